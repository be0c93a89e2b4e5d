# SPDX-License-Identifier: Apache-2.0
"""What an accelerator costs on a real device, and how fast it runs there: Yosys and nextpnr."""

__all__: list[str] = []
