# SPDX-License-Identifier: Apache-2.0
"""Windowed operators: their description as the generator reads it, and their expressions."""
