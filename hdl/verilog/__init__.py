# SPDX-License-Identifier: Apache-2.0
"""From an Amaranth component to readable Verilog, and its lint."""
