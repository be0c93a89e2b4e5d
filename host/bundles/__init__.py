# SPDX-License-Identifier: Apache-2.0
"""The bundles on this machine, and which one serves a query."""
