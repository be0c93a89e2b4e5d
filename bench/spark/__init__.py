# SPDX-License-Identifier: Apache-2.0
"""Joins and aggregates of the kit beside Spark's own: ``python -m bench.spark --help``."""
