# SPDX-License-Identifier: Apache-2.0
"""Windowed aggregates by key (A+ of STRETCH): panes, windows, and the cores that hold them."""

__all__: list[str] = []
