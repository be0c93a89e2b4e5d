# SPDX-License-Identifier: Apache-2.0
"""The engine that compares every key of a sub-window with every probe (Algorithm 3)."""

__all__: list[str] = []
