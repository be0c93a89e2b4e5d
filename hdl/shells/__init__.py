# SPDX-License-Identifier: Apache-2.0
"""Shells around the accelerator: AXI, UART and Ethernet."""
