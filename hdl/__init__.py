# SPDX-License-Identifier: Apache-2.0
"""The accelerator in Amaranth, and its way to Verilog: ``python -m hdl --help``."""

__all__: list[str] = []
