# SPDX-License-Identifier: Apache-2.0
"""The functions that a PySpark program calls."""
