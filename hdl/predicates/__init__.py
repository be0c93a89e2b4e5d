# SPDX-License-Identifier: Apache-2.0
"""Predicates: band, equality and one's own, what each stores and compares, and two examples."""
