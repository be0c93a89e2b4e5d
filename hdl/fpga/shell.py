# SPDX-License-Identifier: Apache-2.0
"""Shell around an accelerator while it is routed: a few pads, and registers on all sides."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from hdl.architecture import make_accelerator
from hdl.shells.merged_inputs import MergedInputs

__all__ = ["SHELL", "RoutingShell"]

#: Name of the shell's module.
SHELL = "routing_shell"


class RoutingShell(wiring.Component):
    """An accelerator behind a serial input and a serial output.

    Every input is driven by a shift register. Every output goes into a register and from there into
    another shift register. Reset passes two registers. So no path of the accelerator contains a
    pad, nothing can be optimized away, and the shell's own paths are one multiplexer long. The
    shell is no interface: it exists to measure clock and area, and adds one register per input bit
    and two per output bit.

    Latency: 1 cycle from ``data_in`` to the lowest bit of the first input, and 1 more for each bit
    above it; :attr:`latency` cycles from ``capture``, and the outputs in its cycle, to the highest
    bit of the last output at ``data_out``, and 1 more for each bit below it; 2 cycles from reset to
    that of the accelerator. Throughput: 1 bit in and 1 bit out per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    inputs : int
        With more than one, the accelerator stands behind the merge of so many inputs
        (:class:`hdl.shells.merged_inputs.MergedInputs`).

    Members
    -------
    data_in : In(1)
        Next bit of the inputs.
    capture : In(1)
        Load the outputs into the output shift register, which otherwise shifts.
    data_out : Out(1)
    """

    def __init__(self, parameters, *, inputs=1):
        self.parameters = parameters
        self.inputs = inputs
        self.latency = 2
        super().__init__({"data_in": In(1), "capture": In(1), "data_out": Out(1)})

    def elaborate(self, platform):
        m = Module()
        # Clock domain of the accelerator, whose reset comes from a register.
        m.domains.inside = inside = ClockDomain(local=True)
        held = Signal(2, reset_less=True)
        m.d.sync += held.eq(Cat(ResetSignal("sync"), held))
        m.d.comb += [inside.clk.eq(ClockSignal("sync")), inside.rst.eq(held[-1])]

        accelerator = make_accelerator(self.parameters)
        m.submodules.accelerator = DomainRenamer("inside")(accelerator)
        ports = list(accelerator.signature.flatten(accelerator))
        if self.inputs > 1:
            ports = self.elaborate_merge(m, accelerator, ports)
        inputs, outputs = [], []
        for _, member, value in ports:
            (inputs if member.flow == In else outputs).append(Value.cast(value))
        inputs, outputs = Cat(inputs), Cat(outputs)

        shifted = Signal(len(inputs), reset_less=True)
        taken = Signal(len(outputs), reset_less=True)
        sent = Signal(len(outputs), reset_less=True)
        capture = Signal(reset_less=True)
        m.d.comb += [inputs.eq(shifted), self.data_out.eq(sent[-1])]
        m.d.sync += [
            shifted.eq(Cat(self.data_in, shifted)),
            capture.eq(self.capture),
            taken.eq(outputs),
            sent.eq(Mux(capture, taken, Cat(Const(0, 1), sent))),
        ]
        return m

    def elaborate_merge(self, m, accelerator, ports):
        """Put a merge of inputs in front of the accelerator; return the ports that both have."""
        merged = MergedInputs(self.parameters, inputs=self.inputs)
        m.submodules.merged = DomainRenamer("inside")(merged)
        connect(m, merged.o, accelerator.i)
        return [
            *(port for port in merged.signature.flatten(merged) if port[0][0] != "o"),
            *(port for port in ports if port[0][0] != "i"),
        ]
