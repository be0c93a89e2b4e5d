# SPDX-License-Identifier: Apache-2.0
"""What a stream join means: the oracle that every test and every check compares with.

Here are sides, windows, predicates and arrivals, the reference joins and operators, and exact
arithmetic on 64-bit columns. Nothing here is optimized, knows a device or shares code with an
engine. What a caller asks for is in :mod:`host.query`.
"""
