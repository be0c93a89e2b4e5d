# SPDX-License-Identifier: Apache-2.0
"""What a caller asks for: the description of a join or an aggregation, checked once.

Here are queries with their terms, windows, orders, precision and cores, exact durations, and the
tables that a query reads. Nothing here knows a device or a manifest; how columns become key fields
is in :mod:`host.columns`.
"""
