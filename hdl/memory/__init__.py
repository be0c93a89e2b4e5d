# SPDX-License-Identifier: Apache-2.0
"""Memories that are read through their output registers, and the block RAM of an ECP5."""
