# SPDX-License-Identifier: Apache-2.0
"""The window of a region: which tuples it stores, and when they expire."""
