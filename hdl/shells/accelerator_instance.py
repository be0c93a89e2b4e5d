# SPDX-License-Identifier: Apache-2.0
"""An accelerator that is described in another file."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hdl.families.choice import family_of
from hdl.verilog.conversion import TOP, port_names

__all__ = ["AcceleratorInstance"]


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
