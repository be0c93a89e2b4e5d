# SPDX-License-Identifier: Apache-2.0
"""cocotb benches of whole accelerators under Verilator."""

__all__: list[str] = []
