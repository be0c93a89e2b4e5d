# SPDX-License-Identifier: Apache-2.0
"""Names of shells and of their pins, and the accelerator inside as a Verilog instance."""

from dataclasses import dataclass

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hdl.families.choice import family_of
from hdl.verilog.conversion import TOP, port_names

__all__ = ["PIN_NAMES", "SHELLS", "AcceleratorInstance", "PinNames", "shell_top"]


class AcceleratorInstance(wiring.Component):
    """Instance of the module that a bundle's Verilog has as its top.

    A shell is written into a file of its own, beside that Verilog. So the accelerator in a shell
    is, byte for byte, the one that the hash of the bundle names.

    Latency, throughput: those of the accelerator.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator.

    Members
    -------
    The members of the accelerator.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        super().__init__(family_of(parameters).ports)

    def elaborate(self, platform):
        m = Module()
        ports = {
            f"{'i' if member.flow == In else 'o'}_{name}": value
            for name, member, value in port_names(self)
        }
        m.submodules.splitjoin = Instance(TOP, i_clk=ClockSignal(), i_rst=ResetSignal(), **ports)
        return m


#: Shells that ``python -m hdl generate --shell`` writes.
SHELLS = ("axi",)


def shell_top(shell):
    """Return the name of a shell's top module, which its files begin with too."""
    return f"splitjoin_{shell}"


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
