# SPDX-License-Identifier: Apache-2.0
"""The AXI shell, its options and their words on the command line."""

from dataclasses import asdict, dataclass

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.families.choice import family_of, make_accelerator
from hdl.registers.table import shell_table, word_bytes

from .axi_streams import AxiLite, AxiLiteSlave, AxiStream, AxiStreamInput, AxiStreamOutput
from .bus_crossing import BusCrossing, MemoryIsolator, ResetStretch
from .merged_inputs import MergedInputs, WordWatch
from .names import PIN_NAMES, AcceleratorInstance, shell_top
from .registers import ShellRegisters, hash_number

__all__ = [
    "AXI_TOP",
    "BUS_CLOCKS",
    "AxiOptions",
    "AxiShell",
    "add_axi_options",
    "axi_options_from",
    "master_name",
    "slave_names",
]


#: The registers have the clock of the streams, or one of their own.
BUS_CLOCKS = ("shared", "separate")
#: Most results of a packet.
LONGEST_PACKET = 1 << 16


@dataclass(frozen=True, kw_only=True)
class AxiOptions:
    """What an AXI shell looks like from outside.

    Parameters
    ----------
    inputs : int
        1: one input ``s_axis`` for all words. More, up to 64, are merged by timestamp. Of a join,
        2 are ``s_axis_r`` and ``s_axis_s`` for R and S, and more are several sources of a side,
        ``s_axis_r0`` and so on. Of an aggregate, they are ``s_axis_in0`` and so on.
    r_inputs : int or None
        So many of the inputs of a join bring R's tuples. None: half of them, rounded down.
    bus_clock : str
        One of :data:`BUS_CLOCKS`.
    names : str
        One of :data:`hdl.shells.names.PIN_NAMES`.
    packet : int
        For a DMA: ``tlast`` ends a packet of so many results, 2 to 65,536, or sooner
        (:class:`hdl.shells.axi_streams.AxiStreamOutput`), and words take whole 64-bit numbers at
        the pins, a power of two of them. Zero: ``tlast`` is set on marks only, and words take
        whole bytes.
    """

    inputs: int = 1
    r_inputs: int | None = None
    bus_clock: str = "shared"
    names: str = "axi"
    packet: int = 0

    def __post_init__(self):
        if self.bus_clock not in BUS_CLOCKS:
            raise ValueError(
                f"Clock of the registers must be {' or '.join(BUS_CLOCKS)}, not {self.bus_clock!r}"
            )
        if self.names not in PIN_NAMES:
            raise ValueError(
                f"Names of the pins must be {' or '.join(PIN_NAMES)}, not {self.names!r}"
            )
        if self.packet and not 2 <= self.packet <= LONGEST_PACKET:
            raise ValueError(
                f"Packet must be 2 to {LONGEST_PACKET} results, or 0 for none, not {self.packet!r}"
            )

    @property
    def pins(self):
        """Return the :class:`hdl.shells.names.PinNames`."""
        return PIN_NAMES[self.names]

    @property
    def has_bus_clock(self):
        """Return whether the registers have a clock of their own."""
        return self.bus_clock == "separate"

    @property
    def clocks(self):
        """Return the names of each clock and its reset; that of the registers is the last one."""
        pins = self.pins
        of_bus = [(pins.bus_clock, pins.bus_reset)] if self.has_bus_clock else []
        return [(pins.clock, pins.reset), *of_bus]

    def bytes_of(self, word):
        """Return the bytes that a word of a manifest takes at the pins."""
        return word_bytes(word["bits"], is_row=self.packet > 0)

    def registers(self, parameters):
        """Return the :func:`~hdl.registers.table.shell_table` of the shell."""
        return shell_table(parameters, merged=self.merged(parameters), is_row=self.packet > 0)

    def merged(self, parameters):
        """Return the names of the inputs that are merged; none if there is one input.

        Raises
        ------
        ValueError
            If the accelerator cannot have these inputs.
        """
        return family_of(parameters).inputs(self.inputs, self.r_inputs).names

    def check(self, parameters):
        """Raise :exc:`ValueError` unless the options suit an accelerator."""
        self.merged(parameters)

    def to_dict(self):
        """Return the options as they are in a manifest."""
        return asdict(self)

    @classmethod
    def from_manifest(cls, described):
        """Return the options of a shell that a manifest describes; of an older kit the defaults."""
        return cls(**described.get("options", {}))


#: Names of the parsed options, and the fields of :class:`AxiOptions` that they set.
FIELDS = {
    "axi_inputs": "inputs",
    "axi_r_inputs": "r_inputs",
    "bus_clock": "bus_clock",
    "names": "names",
    "axi_packet": "packet",
}


def add_axi_options(command):
    """Add the options to the parser of a command."""
    group = command.add_argument_group("AXI shell")
    group.add_argument(
        "--axi-inputs", type=int, metavar="N",
        help="inputs of the AXI shell: 1, 2 for R and S by themselves, or up to 64 for several "
        "sources of a side, or of an aggregate's tuples; all are merged by timestamp",
    )  # fmt: skip
    group.add_argument(
        "--axi-r-inputs", type=int, metavar="N",
        help="how many of the inputs of a join are R's; default: half of them, rounded down",
    )  # fmt: skip
    group.add_argument(
        "--bus-clock", choices=BUS_CLOCKS,
        help="whether the registers of the AXI shell have a clock of their own",
    )  # fmt: skip
    group.add_argument(
        "--names", choices=PIN_NAMES, help="names of the AXI shell's pins; vitis: of an RTL kernel"
    )
    group.add_argument(
        "--axi-packet", type=int, metavar="N",
        help="for a DMA: tlast after N results, or after N cycles without one, beside marks; words "
        "take whole 64-bit numbers at the pins",
    )  # fmt: skip


def axi_options_from(options, *, has_shell):
    """Return the :class:`AxiOptions` of a parsed command line.

    Raises
    ------
    ValueError
        If there are any although no AXI shell was asked for.
    """
    given = {field: getattr(options, name) for name, field in FIELDS.items()}
    axi = {field: value for field, value in given.items() if value is not None}
    if axi and not has_shell:
        raise ValueError("Options of the AXI shell need --shell axi")
    return AxiOptions(**axi)


#: Name of the top module.
AXI_TOP = shell_top("axi")


def master_name(port):
    """Return the name of the AXI4-Stream master of a result port: ``m_axis``, ``m_axis_r``."""
    return f"m_axis{port[1:]}"


def slave_names(merged):
    """Return the names of the AXI4-Stream slaves of a shell that merges the inputs ``merged``."""
    return [f"s_axis_{name.lower()}" for name in merged] or ["s_axis"]


class AxiShell(wiring.Component):
    """AXI shell of an accelerator: AXI4-Stream in and out, AXI4-Lite registers, an interrupt.

    All signals belong to ``aclk``. ``aresetn`` is low for one cycle or more. The accelerator is
    then in reset for 16 cycles more, in which no word is taken, and neither are words while
    CONTROL.ENABLE is zero. Registers can be read and written all the time.

    Several inputs are merged by timestamp (:class:`hdl.shells.merged_inputs.MergedInputs`). Those
    of a join bring tuples of R or of S.

    With a separate bus clock, the signals of the registers belong to ``s_axi_aclk``, with its own
    reset (:class:`hdl.shells.bus_crossing.BusCrossing`); ``interrupt`` still belongs to ``aclk``.
    The options may give the pins other names (:mod:`hdl.shells.names`).

    Latency: :attr:`latency` cycles more than the accelerator, 1 in front of it, or 1 and the
    latency of the merge, and 1 behind it, or 2 with packets. Throughput: 1 word per cycle in, and 1
    word per cycle out of every port; with several inputs, 1 tuple per cycle in of all together.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator.
    digest : str
        Hash of the bundle's manifest, 64 hexadecimal digits.
    options : AxiOptions
        What the shell looks like from outside.
    is_whole : bool
        Whether the accelerator is a part of the shell. Otherwise it is in a file of its own, as
        module ``splitjoin``.

    Members
    -------
    aclk, aresetn : In(1)
    s_axis : In(AxiStream)
        Input words. With several inputs: those of :func:`slave_names`.
    m_axis : Out(AxiStream)
        Result words. With two result ports: ``m_axis_r`` and ``m_axis_s``.
    s_axi : In(AxiLite())
        Registers.
    s_axi_aclk, s_axi_aresetn : In(1)
        With a separate bus clock only.
    interrupt : Out(1)
        High while INTERRUPT_STATUS has a bit that INTERRUPT_ENABLE has as well.
    m_axi : Out(shared_port(parameters)).array(2 * cores)
        External memory, if windows are kept there. Addresses of a port begin behind those of the
        port before it, the first at MEMORY_BASE, so that one memory can serve all. A reset by
        CONTROL.RESET lasts until all transactions have ended; ``aresetn`` has to reset the memory
        as well.
    """

    def __init__(self, parameters, *, digest, options=None, is_whole=False):
        self.parameters = parameters
        self.options = AxiOptions() if options is None else options
        self._family = family = family_of(parameters)
        self.is_whole = is_whole
        self._hash = hash_number(digest)
        merged, pins = self.options.merged(parameters), self.options.pins
        bus_pins = {pins.bus_clock: In(1), pins.bus_reset: In(1)}
        self._inputs = {
            name: AxiStreamInput(family.input_word, is_row=self.options.packet > 0)
            for name in slave_names(merged)
        }
        self._merged = None
        if merged:
            self._merged = MergedInputs(
                parameters, inputs=self.options.inputs, r_inputs=self.options.r_inputs
            )
        self._outputs = [
            AxiStreamOutput(family.result_word, packet=self.options.packet)
            for _ in family.result_ports
        ]
        merge_latency = self._merged.latency if self._merged else 0
        self.latency = 1 + merge_latency + self._outputs[0].latency
        masters = {
            master_name(port): Out(AxiStream(output.size))
            for port, output in zip(family.result_ports, self._outputs, strict=True)
        }
        super().__init__(
            {
                pins.clock: In(1),
                pins.reset: In(1),
                **{name: In(AxiStream(i.size)) for name, i in self._inputs.items()},
                **masters,
                pins.registers: In(AxiLite()),
                **(bus_pins if self.options.has_bus_clock else {}),
                "interrupt": Out(1),
                **family.memory_ports,
            }
        )

    def elaborate(self, platform):
        m = Module()
        pins, merged = self.options.pins, self.options.merged(self.parameters)
        m.domains.sync = sync = ClockDomain(local=True)
        m.domains.inside = inside = ClockDomain(local=True)
        m.submodules.stretch = stretch = ResetStretch()
        m.submodules.registers = registers = ShellRegisters(
            self.parameters, merged=merged, is_row=self.options.packet > 0
        )
        make = make_accelerator if self.is_whole else AcceleratorInstance
        m.submodules.accelerator = accelerator = DomainRenamer("inside")(make(self.parameters))
        m.submodules.watch = watch = DomainRenamer("inside")(WordWatch(self.parameters))
        m.d.comb += [
            sync.clk.eq(getattr(self, pins.clock)),
            sync.rst.eq(~getattr(self, pins.reset)),
            inside.clk.eq(getattr(self, pins.clock)),
            inside.rst.eq(stretch.reset),
            stretch.restart.eq(
                registers.restart | self.elaborate_memories(m, accelerator, registers, stretch)
            ),
            registers.resetting.eq(stretch.reset),
            registers.manifest_hash.eq(self._hash),
            *registers.reading(accelerator),
            registers.busy.eq(watch.busy),
            registers.mark.eq(watch.mark),
            self.interrupt.eq(registers.interrupt),
        ]
        self.elaborate_input(m, accelerator.i, stretch, registers, watch)
        waiting = [
            self.elaborate_output(m, n, getattr(accelerator, name), stretch.reset, watch)
            for n, name in enumerate(self._family.result_ports)
        ]
        m.d.comb += registers.output_waiting.eq(Cat(waiting).any())
        self.elaborate_bus(m, registers)
        return m

    def clock_of(self, port):
        """Return the name of the clock that a port belongs to, by the names of both."""
        pins = self.options.pins
        of_bus = port == pins.bus_reset or port.startswith(f"{pins.registers}_")
        return pins.bus_clock if self.options.has_bus_clock and of_bus else pins.clock

    def elaborate_bus(self, m, registers):
        """Lead accesses to the registers, through another clock domain if they come from there."""
        pins, slave = self.options.pins, AxiLiteSlave()
        connect(m, flipped(getattr(self, pins.registers)), slave.axi)
        if not self.options.has_bus_clock:
            m.submodules.slave = slave
            connect(m, slave.bus, registers.bus)
            return
        m.domains.bus = bus = ClockDomain(local=True)
        m.submodules.slave = DomainRenamer("bus")(slave)
        m.submodules.crossing = crossing = BusCrossing()
        m.d.comb += [
            bus.clk.eq(getattr(self, pins.bus_clock)),
            bus.rst.eq(~getattr(self, pins.bus_reset)),
        ]
        connect(m, slave.bus, crossing.i)
        connect(m, crossing.o, registers.bus)

    def elaborate_memories(self, m, accelerator, registers, stretch):
        """Lead the ports of external memories to the pins; return whether reset has to go on."""
        if not self._family.memory_base:
            return C(0)
        busy = []
        for n, (inner, outer) in enumerate(zip(accelerator.m_axi, self.m_axi, strict=True)):
            m.submodules[f"isolator_{n}"] = isolator = MemoryIsolator(self.parameters)
            connect(m, inner, isolator.i)
            connect(m, isolator.o, flipped(outer))
            m.d.comb += [
                isolator.closed.eq(stretch.reset),
                isolator.above.eq(self._family.memory_base.above_ring(n, registers.memory_base)),
            ]
            busy.append(isolator.busy)
        return stretch.reset & Cat(busy).any()

    def elaborate_input(self, m, words, stretch, registers, watch):
        """Lead words into the accelerator."""
        opened, waiting, dropped = Signal(), Signal(), Signal()
        for name, taken in self._inputs.items():
            m.submodules[name.replace("s_axis", "input")] = DomainRenamer("inside")(taken)
            connect(m, flipped(getattr(self, name)), taken.axis)
            m.d.comb += taken.open.eq(opened)
        ports = [taken.o for taken in self._inputs.values()]
        faults, held = [watch.faults, dropped], C(0)
        if self._merged:
            merged_faults, held = self.elaborate_merge(m, ports, registers)
            faults += merged_faults
            ports = [self._merged.o]
        connect(m, ports[0], words)
        m.d.sync += [
            opened.eq(~stretch.reset & registers.enable & ~registers.restart),
            waiting.eq((words.valid & ~words.ready) | held),
            dropped.eq(Cat(taken.dropped for taken in self._inputs.values()).any()),
        ]
        m.d.comb += [
            registers.input_waiting.eq(waiting),
            registers.faults.eq(Cat(faults)),
            watch.i.eq(words.payload),
            watch.enters.eq(words.valid & words.ready),
        ]

    def elaborate_merge(self, m, ports, registers):
        """Merge the inputs; return the faults of that, and whether a word waits there."""
        merged = self._merged
        m.submodules.merged = DomainRenamer("inside")(merged)
        for port, i in zip(ports, merged.i, strict=True):
            connect(m, port, i)
        m.d.comb += [
            merged.exclude.eq(registers.exclude),
            merged.deadline.eq(registers.deadline),
            registers.late.eq(merged.late),
            registers.excluded.eq(merged.excluded),
            *(
                mine.eq(theirs)
                for mine, theirs in zip(registers.stalls, merged.stalls, strict=True)
            ),
        ]
        by_side = [
            Cat(bit for bit, of in zip(bits, merged.sides, strict=True) if of == side).any()
            for bits in (merged.late, merged.excluded)
            for side in sorted(set(merged.sides))
        ]
        return [*by_side, merged.differ, merged.wrong], merged.waits

    def elaborate_output(self, m, n, results, reset, watch):
        """Lead the words of a result port to its pins; return whether one of them waits there."""
        output = self._outputs[n]
        axis = getattr(self, master_name(self._family.result_ports[n]))
        m.submodules[f"output_{n}"] = output
        connect(m, results, output.i)
        connect(m, output.axis, flipped(axis))
        waiting = Signal(name=f"output_{n}_waiting")
        m.d.sync += waiting.eq(output.axis.tvalid & ~output.axis.tready)
        m.d.comb += [
            output.closed.eq(reset),
            watch.o[n].eq(results.payload),
            watch.leaves[n].eq(results.valid & results.ready),
        ]
        return waiting
