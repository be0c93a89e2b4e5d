# SPDX-License-Identifier: Apache-2.0
"""Packages of an accelerator for other designs: one Verilog file, and what goes with it."""
