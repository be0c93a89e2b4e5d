# SPDX-License-Identifier: Apache-2.0
"""Where a query runs and why, and what it costs."""
