# SPDX-License-Identifier: Apache-2.0
"""The simulator library: the Verilog of a bundle, compiled by Verilator into a shared object."""

__all__: list[str] = []
