# SPDX-License-Identifier: Apache-2.0
"""The joins that SplitJoin is compared with: chains of cores through which tuples flow."""

__all__: list[str] = []
