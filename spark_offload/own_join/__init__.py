# SPDX-License-Identifier: Apache-2.0
"""The same question as Spark's own join."""
