# SPDX-License-Identifier: Apache-2.0
"""Joins and aggregations of streams in Spark's Structured Streaming, with its state store."""
