# SPDX-License-Identifier: Apache-2.0
"""Predicates: band, equality and custom ones, what each stores and compares, two examples."""
