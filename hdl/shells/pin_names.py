# SPDX-License-Identifier: Apache-2.0
"""Names of a shell's pins, as different design flows expect them."""

from dataclasses import dataclass

__all__ = ["PIN_NAMES", "PinNames"]


@dataclass(frozen=True)
class PinNames:
    """Names of clocks, resets and the interface of the registers.

    Parameters
    ----------
    clock, reset : str
        Of the streams and the accelerator.
    bus_clock, bus_reset : str
        Of the registers, if they have a clock of their own.
    registers : str
        How the names of the AXI4-Lite signals begin.
    """

    clock: str
    reset: str
    bus_clock: str
    bus_reset: str
    registers: str


#: Sets of names, by the name of the set.
PIN_NAMES = {
    "axi": PinNames("aclk", "aresetn", "s_axi_aclk", "s_axi_aresetn", "s_axi"),
    "vitis": PinNames("ap_clk", "ap_rst_n", "ap_clk_2", "ap_rst_n_2", "s_axi_control"),
}
