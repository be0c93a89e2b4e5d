# SPDX-License-Identifier: Apache-2.0
"""Index join engine: chains of stored tuples per bucket, so that only possible matches are read."""

__all__: list[str] = []
