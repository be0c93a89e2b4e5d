# SPDX-License-Identifier: Apache-2.0
"""Ethernet: datagrams of UDP as a byte stream, one byte per cycle at a gigabit per second."""
