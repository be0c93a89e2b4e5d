# SPDX-License-Identifier: Apache-2.0
"""Aggregation of tables and streams of rows over windows of time, on the host."""
