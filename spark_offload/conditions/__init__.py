# SPDX-License-Identifier: Apache-2.0
"""Conditions that are written as Columns of Spark, read as terms of a join."""
