# SPDX-License-Identifier: Apache-2.0
"""Decisions while a join runs: precision, cores, and when tuples are offered."""
