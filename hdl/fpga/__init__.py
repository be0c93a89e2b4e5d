# SPDX-License-Identifier: Apache-2.0
"""Cost and clock of an accelerator on a real device, measured with Yosys and nextpnr."""

__all__: list[str] = []
