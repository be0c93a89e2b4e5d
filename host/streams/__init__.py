# SPDX-License-Identifier: Apache-2.0
"""Streams that any graph can have: sources, sorting, merging, duplicates, limits, spilling."""
