# SPDX-License-Identifier: Apache-2.0
"""Scan join engine: compares every key of a sub-window with every probe (Algorithm 3)."""

__all__: list[str] = []
