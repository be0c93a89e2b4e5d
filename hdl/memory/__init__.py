# SPDX-License-Identifier: Apache-2.0
"""Memories with registered outputs, and the block RAM primitive of an ECP5."""
