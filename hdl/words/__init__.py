# SPDX-License-Identifier: Apache-2.0
"""The words that travel through the accelerator, one layout each."""
