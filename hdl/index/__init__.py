# SPDX-License-Identifier: Apache-2.0
"""The engine that reads only what can match: chains of stored tuples, one for each bucket."""

__all__: list[str] = []
