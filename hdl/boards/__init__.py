# SPDX-License-Identifier: Apache-2.0
"""Boards: what is on them, what fits, and their bitstreams."""
