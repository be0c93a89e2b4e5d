# SPDX-License-Identifier: Apache-2.0
"""Layouts of the words that travel through the accelerator, and functions on these words."""
