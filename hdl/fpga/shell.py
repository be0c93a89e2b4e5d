# SPDX-License-Identifier: Apache-2.0
"""Shells around an accelerator while it is routed or opened for estimates."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from hdl.counters import COUNTER_BITS, address_bits
from hdl.families.choice import make_accelerator
from hdl.shells.merged_inputs import MergedInputs
from hdl.words.inputs import input_word
from hdl.words.results import result_ports, result_word

__all__ = ["SHELL", "RoutingShell", "open_shell", "port_widths"]


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


REGISTER = "TRELLIS_FF"


def port_widths(parameters):
    """Return the inputs and outputs of an accelerator, in the order in which the shell shifts them.

    Returns
    -------
    inputs, outputs : dict
        Port name, as in the Verilog of a bundle, to width in bits.
    """
    inputs = {"i_payload": input_word(parameters).size, "i_valid": 1}
    outputs = {"i_ready": 1}
    for port in result_ports(parameters):
        inputs[f"{port}_ready"] = 1
        outputs |= {f"{port}_payload": result_word(parameters).size, f"{port}_valid": 1}
    inputs["counter_addr"] = address_bits(parameters)
    outputs["counter_data"] = COUNTER_BITS
    return inputs, outputs


def shift_register(cells, bit, length):
    """Return the names of the registers that ``bit`` is shifted through, in order.

    A register of the accelerator may read such a bit, too. The registers of the shell are those
    that come from a single statement of the source.
    """
    readers = {}
    for name, cell in cells.items():
        if cell["type"] == REGISTER:
            readers.setdefault(cell["connections"]["DI"][0], []).append(name)
    chain = []
    for _ in range(length):
        names = readers.get(bit, [])
        if chain:
            origin = cells[chain[0]]["attributes"]["src"]
            names = [name for name in names if cells[name]["attributes"]["src"] == origin]
        if len(names) != 1:
            raise ValueError(
                f"Input {len(chain)} of {length} of the shell drives {names!r}, not one register"
            )
        chain += names
        (bit,) = cells[names[0]]["connections"]["Q"]
    return chain


def ports_of(widths, direction, bits):
    """Return the ports in the form of Yosys' JSON; ``bits`` are the bits of all ports, in order."""
    ports, first = {}, 0
    for name, width in widths.items():
        ports[name] = {"direction": direction, "bits": bits[first : first + width]}
        first += width
    return ports


def open_shell(netlist, parameters, *, name):
    """Give a routed netlist the ports of the accelerator that is in the shell.

    The shell's registers at the inputs and outputs are removed; reset still passes its two
    registers. No other cell changes, so a simulation through these ports runs what nextpnr gets.

    Parameters
    ----------
    netlist : dict
        Netlist as Yosys' JSON, written by :func:`hdl.fpga.route.placed_netlist`; changed in place.
    parameters : JoinParameters
        Parameters of the accelerator.
    name : str
        New name of the module.

    Raises
    ------
    ValueError
        If the netlist is not that of such an accelerator in its shell.
    """
    module = netlist["modules"].pop(SHELL)
    cells, ports, names = module["cells"], module["ports"], module["netnames"]
    inputs, outputs = port_widths(parameters)

    chain = shift_register(cells, ports["data_in"]["bits"][0], sum(inputs.values()))
    shifted = [cells.pop(cell)["connections"]["Q"][0] for cell in chain]
    drivers = {
        cell["connections"]["Q"][0]: cell["connections"]["DI"][0]
        for cell in cells.values()
        if cell["type"] == REGISTER
    }
    taken = [drivers.get(bit, bit) for bit in names["taken"]["bits"]]
    if len(taken) != sum(outputs.values()):
        raise ValueError(f"The shell takes {len(taken)} outputs, not {sum(outputs.values())}")

    module["ports"] = {
        "clk": ports["clk"],
        "rst": ports["rst"],
        **ports_of(inputs, "input", shifted),
        **ports_of(outputs, "output", taken),
    }
    for port in module["ports"]:  # names of the same bits, or of the shell's ports
        names.pop(port, None)
    module["attributes"].pop("top", None)
    netlist["modules"][name] = module
