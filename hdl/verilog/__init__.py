# SPDX-License-Identifier: Apache-2.0
"""Conversion of Amaranth components to readable Verilog, and its lint."""
