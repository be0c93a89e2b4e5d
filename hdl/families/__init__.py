# SPDX-License-Identifier: Apache-2.0
"""Families of accelerators: what a shell asks of a join, and of an aggregate."""

__all__: list[str] = []
