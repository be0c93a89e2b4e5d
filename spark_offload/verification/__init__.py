# SPDX-License-Identifier: Apache-2.0
"""The same questions as Spark's own queries: the independent check of `verify`."""
