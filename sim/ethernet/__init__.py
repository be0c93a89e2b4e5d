# SPDX-License-Identifier: Apache-2.0
"""The other side of a board's Ethernet, in Python."""
