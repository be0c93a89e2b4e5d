# SPDX-License-Identifier: Apache-2.0
"""Netlists: their data model, and how Yosys' JSON is read as modules."""

from collections import ChainMap
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
import json
import re
from typing import NamedTuple

__all__ = [
    "ALWAYS", "OPERATORS", "Bits", "Clause", "Condition", "Expression", "Instance", "Module",
    "Register", "Run", "Signal", "Target", "UnknownNetlist", "expression", "read_netlist",
    "register", "unused",
]  # fmt: skip


# Bits of a netlist: a sequence of runs of signal bits and constants.


class Run(NamedTuple):
    """Neighbouring bits of a signal, from bit ``low`` up.

    If ``name`` is None, the bits are constant and ``low`` is their value.
    """

    name: str | None
    low: int
    width: int

    def part(self, low, width):
        """Return ``width`` bits of this run, from bit ``low`` up."""
        if self.name is None:
            return Run(None, self.low >> low & (1 << width) - 1, width)
        return Run(self.name, self.low + low, width)

    def followed_by(self, above):
        """Return this run and the run ``above`` as one run; None if they cannot be joined."""
        if self.name != above.name:
            return None
        if self.name is None:
            return Run(None, self.low | above.low << self.width, self.width + above.width)
        if self.low + self.width != above.low:
            return None
        return Run(self.name, self.low, self.width + above.width)


@dataclass(frozen=True)
class Bits:
    """A sequence of bits, as the smallest number of runs.

    Parameters
    ----------
    runs : tuple of Run
        Runs, the lowest first. Use :meth:`of`, which joins neighbouring runs where possible.
    """

    runs: tuple

    @classmethod
    def of(cls, runs):
        """Return the bits of any runs, which are given the lowest first."""
        found = []
        for run in runs:
            both = found[-1].followed_by(run) if found else None
            if both:
                found[-1] = both
            else:
                found.append(run)
        return cls(tuple(found))

    @classmethod
    def whole(cls, name, width):
        """Return all bits of a signal."""
        return cls((Run(name, 0, width),))

    @classmethod
    def constant(cls, value, width):
        """Return constant bits."""
        return cls((Run(None, value, width),))

    @cached_property
    def width(self):
        """Number of bits."""
        return sum(run.width for run in self.runs)

    @cached_property
    def names(self):
        """Names of the signals that the bits belong to."""
        return frozenset(run.name for run in self.runs if run.name is not None)

    @property
    def value(self):
        """Value of the bits if all of them are constant; otherwise None."""
        return self.runs[0].low if len(self.runs) == 1 and not self.names else None

    def part(self, low, width):
        """Return ``width`` of these bits, from bit ``low`` up."""
        found, start, end = [], 0, low + width
        for run in self.runs:
            first, last = max(low, start), min(end, start + run.width)
            if first < last:
                found.append(run.part(first - start, last - first))
            start += run.width
        return Bits.of(found)

    def substitute(self, sources):
        """Return these bits with each signal that is a key of ``sources`` replaced by the value."""
        if sources.keys().isdisjoint(self.names):
            return self
        found = []
        for run in self.runs:
            source = sources.get(run.name)
            found += [run] if source is None else source.part(run.low, run.width).runs
        return Bits.of(found)


NOTHING = Bits(())


# The data model of a netlist's modules.
#
# Every signal has one driver: an input port, a cell, or an instance. The output of a cell that
# computes is a *variable*; the other cells are *registers* and *memories*. Whatever reads signals
# reads them as :class:`.Bits`.


class UnknownNetlist(Exception):
    """The netlist contains a construct that the rewriter does not know.

    Verilator can still compile the bundle's own Verilog.
    """


@dataclass(frozen=True)
class Signal:
    """A signal of ``width`` bits, or a memory with rows of ``width`` bits.

    ``initial`` is the value of a register, or of every row of a memory, after power-up; None if any
    value will do. Memories begin with zeros or with any values.
    """

    width: int
    initial: int | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Condition:
    """A conjunction of tests, each of which requires bits to be high (True) or low (False).

    A condition without tests always holds.
    """

    tests: tuple  # of (Bits, bool)

    @cached_property
    def names(self):
        """Names of the signals that the condition reads."""
        return frozenset().union(*(bits.names for bits, _ in self.tests))

    def substitute(self, sources):
        """Return the condition with some signals replaced; see :meth:`.Bits.substitute`."""
        if sources.keys().isdisjoint(self.names):
            return self
        return Condition(tuple((bits.substitute(sources), high) for bits, high in self.tests))


ALWAYS = Condition(())


@dataclass(frozen=True)
class Expression:
    """The value that a cell computes, or a row of a memory.

    Parameters
    ----------
    kind : str
        A cell type in :data:`sim.rewriter.cells.OPERATORS`, or one of three others. ``"bits"``
        passes on its only operand. ``"choice"`` has a default operand and then pairs of a select
        bit and the operand that a high select bit chooses; a later pair takes precedence.
        ``"row"`` reads the memory at the address given by its operand.
    operands : tuple of Bits
    signed : bool
        Whether the operands are signed.
    memory : str or None
        Name of the memory, for a row.
    """

    kind: str
    operands: tuple
    signed: bool = False
    memory: str | None = None

    @cached_property
    def names(self):
        """Names of the signals and the memory that the expression reads."""
        names = frozenset().union(*(bits.names for bits in self.operands))
        return names | {self.memory} if self.memory else names

    def substitute(self, sources):
        """Return the expression with some signals replaced; see :meth:`.Bits.substitute`."""
        if sources.keys().isdisjoint(self.names):
            return self
        memory = sources[self.memory].runs[0].name if self.memory in sources else self.memory
        operands = tuple(bits.substitute(sources) for bits in self.operands)
        return Expression(self.kind, operands, self.signed, memory)

    @property
    def passed(self):
        """Operands that are passed on unchanged; None if the expression computes a new value."""
        if self.kind == "choice":
            return self.operands[:1] + self.operands[2::2]
        return self.operands if self.kind == "bits" else None

    def part(self, low, width):
        """Return ``width`` bits from bit ``low`` up; only for an expression that passes bits on."""
        operands = [bits.part(low, width) for bits in self.operands]
        operands[1::2] = self.operands[1::2]
        return Expression(self.kind, tuple(operands))


@dataclass(frozen=True)
class Target:
    """The destination of an assignment.

    It is a register, or ``width`` bits from bit ``low`` up of the memory row at ``address``.
    """

    name: str
    address: Bits = NOTHING
    low: int = 0
    width: int = 0

    def substitute(self, sources):
        """Return the target with some signals replaced; see :meth:`.Bits.substitute`."""
        name = sources[self.name].runs[0].name if self.name in sources else self.name
        return Target(name, self.address.substitute(sources), self.low, self.width)


@dataclass(frozen=True)
class Clause:
    """An assignment under a condition: the target takes the value of the expression."""

    condition: Condition
    target: Target
    value: Expression

    @cached_property
    def read(self):
        """Names of the signals that the target's address and the value read."""
        return self.target.address.names | self.value.names

    def substitute(self, sources):
        """Return the clause with some signals replaced; see :meth:`.Bits.substitute`."""
        parts = (self.condition, self.target, self.value)
        return Clause(*(part.substitute(sources) for part in parts))

    def reading(self, sources):
        """Return the clause with signals replaced in address and value, not in the condition."""
        target = replace(self.target, address=self.target.address.substitute(sources))
        return replace(self, target=target, value=self.value.substitute(sources))


@dataclass
class Register:
    """An action at a rising clock edge: the first clause whose condition holds takes effect."""

    clock: Bits
    clauses: list

    @property
    def name(self):
        """Name of the register or memory."""
        return self.clauses[0].target.name

    def substitute(self, sources):
        """Return the register with some signals replaced; see :meth:`.Bits.substitute`."""
        clauses = [clause.substitute(sources) for clause in self.clauses]
        return Register(self.clock.substitute(sources), clauses)


@dataclass
class Instance:
    """An instance of a module inside another module.

    Parameters
    ----------
    kind, place : str
        Name of the instantiated module, and name of the instance.
    inputs : dict of str to Bits
        Bits that each input port receives.
    outputs : dict of str to str
        Name of the signal that each output port drives.
    """

    kind: str
    place: str
    inputs: dict
    outputs: dict


@dataclass
class Module:
    """The contents of a module.

    Parameters
    ----------
    name : str
    ports : dict of str to str
        Direction of each port, ``"input"`` or ``"output"``, in the order of the ports.
    signals : dict of str to Signal
        Everything that has a driver. An output port is a signal only if it is a register.
    variables : dict of str to Expression
    registers : list of Register
        Registers, write ports of memories, and read ports of memories with a clock.
    outputs : dict of str to Bits
        Bits that each output port shows; of a flat module only of those that are no registers.
    instances : list of Instance
    clock : str or None
        Input port that is the clock of all registers; found in a flat module
        (:func:`sim.rewriter.passes.find_clock`).
    """

    name: str
    ports: dict = field(default_factory=dict)
    signals: dict = field(default_factory=dict)
    variables: dict = field(default_factory=dict)
    registers: list = field(default_factory=list)
    outputs: dict = field(default_factory=dict)
    instances: list = field(default_factory=list)
    clock: str | None = None

    def substitute(self, sources):
        """Replace signals by other bits wherever they are read."""
        self.variables = {name: e.substitute(sources) for name, e in self.variables.items()}
        self.registers = [register.substitute(sources) for register in self.registers]
        self.outputs = {port: bits.substitute(sources) for port, bits in self.outputs.items()}
        for instance in self.instances:
            instance.inputs = {
                port: bits.substitute(sources) for port, bits in instance.inputs.items()
            }

    def shows(self):
        """Yield the bits that other modules read: of outputs, and of inputs of instances."""
        yield from self.outputs.values()
        for instance in self.instances:
            yield from instance.inputs.values()

    def reads(self):
        """Yield all bits that are read."""
        yield from self.shows()
        for value in self.variables.values():
            yield from value.operands
        for register in self.registers:
            for clause in register.clauses:
                yield from (bits for bits, _ in clause.condition.tests)
                yield clause.target.address
                yield from clause.value.operands


def unused(name, taken):
    """Return ``name``, with a number appended if the name is taken."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found


# Translate the cells of Yosys into expressions and registers.


#: Verilog operator of each type of cell that has one operand, `A`, or two, `A` and `B`.
OPERATORS = {
    "$not": "~", "$pos": "+", "$neg": "-", "$logic_not": "!", "$reduce_and": "&",
    "$reduce_or": "|", "$reduce_bool": "|", "$reduce_xor": "^", "$reduce_xnor": "~^",
    "$and": "&", "$or": "|", "$xor": "^", "$xnor": "~^", "$add": "+", "$sub": "-", "$mul": "*",
    "$lt": "<", "$le": "<=", "$eq": "==", "$ne": "!=", "$ge": ">=", "$gt": ">",
    "$logic_and": "&&", "$logic_or": "||",
    "$shl": "<<", "$sshl": "<<<", "$shr": ">>", "$sshr": ">>>", "$shift": ">>", "$shiftx": ">>",
}  # fmt: skip
#: Types whose operand `B` is a number of positions and must be unsigned.
SHIFTS = {"$shl", "$sshl", "$shr", "$sshr", "$shift", "$shiftx"}
#: Types of registers. Those with an `e` have an enable `EN`, those with an `s` a synchronous reset
#: `SRST`. In `$sdffce`, the reset takes effect only while the enable is active.
CLOCKED = {"$dff", "$dffe", "$sdff", "$sdffe", "$sdffce"}


def switch(cell, name):
    """Return whether a one-bit parameter of a cell is set."""
    return int(cell["parameters"].get(name, "0"), 2) != 0


def level(cell, bits, polarity):
    """Return the condition that a control input is active; ALWAYS if it is constantly active."""
    high = switch(cell, polarity)
    if bits.value is None:
        return Condition(((bits, high),))
    if bool(bits.value) != high:
        raise UnknownNetlist(f"a cell {cell['type']} that is never active")
    return ALWAYS


def expression(cell, ports):
    """Return the expression that a cell computes.

    Parameters
    ----------
    cell : dict
        The cell as Yosys writes it.
    ports : dict of str to Bits
        Bits that its ports connect.

    Raises
    ------
    UnknownNetlist
        If the type of the cell, or a combination of its parameters, is unknown.
    """
    kind = cell["type"]
    if kind == "$mux":
        return Expression("choice", (ports["A"], ports["S"], ports["B"]))
    if kind == "$pmux":
        width, operands = ports["A"].width, [ports["A"]]
        for number in reversed(range(ports["S"].width)):  # the lowest takes precedence
            operands += [
                ports["S"].part(number, 1),
                ports["B"].part(number * width, width),
            ]
        return Expression("choice", tuple(operands))
    if kind not in OPERATORS:
        raise UnknownNetlist(f"a cell of type {kind}")
    signed, also = switch(cell, "A_SIGNED"), switch(cell, "B_SIGNED")
    if "B" in ports and (also if kind in SHIFTS else signed != also):
        raise UnknownNetlist(f"operands of {kind} that are signed and unsigned")
    return Expression(kind, tuple(ports[name] for name in "AB" if name in ports), signed)


def register(cell, name, ports):
    """Return a cell of a type in :data:`CLOCKED` as the register ``name``.

    The other parameters and the exceptions are those of :func:`expression`.
    """
    if not switch(cell, "CLK_POLARITY"):
        raise UnknownNetlist("a falling edge")
    enable = level(cell, ports["EN"], "EN_POLARITY") if "EN" in ports else ALWAYS
    target, clauses = Target(name), []
    if "SRST" in ports:
        reset = level(cell, ports["SRST"], "SRST_POLARITY")
        if cell["type"] == "$sdffce":
            reset = Condition(enable.tests + reset.tests)
        digits = cell["parameters"]["SRST_VALUE"].replace("x", "0")
        value = Bits.constant(int(digits, 2), len(digits))
        clauses.append(Clause(reset, target, Expression("bits", (value,))))
    clauses.append(Clause(enable, target, Expression("bits", (ports["D"],))))
    return Register(ports["CLK"], clauses)


# Translate memories of Yosys (cells ``$mem_v2``) into registers and variables.


#: Parameters that must be zero. They stand for a first row other than zero, ports wider than the
#: memory, transparent read ports, and priorities between write ports.
UNKNOWN = (
    "OFFSET", "RD_WIDE_CONTINUATION", "RD_TRANSPARENCY_MASK", "WR_WIDE_CONTINUATION",
    "WR_PRIORITY_MASK",
)  # fmt: skip


def number(cell, name):
    """Return the value of a parameter."""
    return int(cell["parameters"][name], 2)


def check(cell, ports):
    """Raise :exc:`UnknownNetlist` if a memory uses a feature that the rewriter does not know."""
    unknown = [name for name in UNKNOWN if "1" in cell["parameters"].get(name, "")]
    if cell["parameters"]["INIT"] != "0" and set(cell["parameters"]["INIT"]) != {"x"}:
        unknown.append("INIT")
    for kind in ("RD_ARST", "RD_SRST"):
        unknown += [kind] if ports[kind].value != 0 else []
    if unknown:
        raise UnknownNetlist(f"a memory with {', '.join(unknown)}")


def one_of(cell, ports, kind, place):
    """Return enable, address and write data of port number ``place``; ``kind`` is "RD" or "WR"."""
    width, bits = number(cell, "WIDTH"), number(cell, "ABITS")
    enables = width if kind == "WR" else 1
    return (
        ports[f"{kind}_EN"].part(place * enables, enables),
        ports[f"{kind}_ADDR"].part(place * bits, bits),
        ports[f"{kind}_DATA"].part(place * width, width) if kind == "WR" else None,
    )


def clock(cell, ports, kind, place):
    """Return the clock of a port; None if the port has no clock."""
    if cell["parameters"][f"{kind}_CLK_ENABLE"][-1 - place] == "0":
        return None
    if cell["parameters"][f"{kind}_CLK_POLARITY"][-1 - place] == "0":
        raise UnknownNetlist("a falling edge")
    return ports[f"{kind}_CLK"].part(place, 1)


def when(enable):
    """Return the condition that a bit is high; None if the bit is constantly low."""
    if enable.value is None:
        return Condition(((enable, True),))
    return ALWAYS if enable.value else None


def read_port(cell, ports, place, memory, name):
    """Return a read port: the register ``name`` if it has a clock, otherwise an expression."""
    enable, address, _ = one_of(cell, ports, "RD", place)
    row = Expression("row", (address,), memory=memory)
    edge = clock(cell, ports, "RD", place)
    if edge is None:
        return row
    condition = when(enable)
    if condition is None:
        raise UnknownNetlist("a memory that is never read")
    return Register(edge, [Clause(condition, Target(name), row)])


def write_port(cell, ports, place, memory):
    """Return a write port as registers: one for each part of the row that has its own enable."""
    enables, address, data = one_of(cell, ports, "WR", place)
    edge = clock(cell, ports, "WR", place)
    if edge is None:
        raise UnknownNetlist("a memory that is written without a clock")
    found = []
    for enable, bits in groupby(range(data.width), lambda bit: enables.part(bit, 1)):
        low, *others = bits
        width, condition = 1 + len(others), when(enable)
        if condition is not None:
            value = Expression("bits", (data.part(low, width),))
            target = Target(memory, address, low, width)
            found.append(Register(edge, [Clause(condition, target, value)]))
    return found


def initial_of(cell):
    """Return what every row of a memory holds after power-up: zero, or None for anything."""
    return 0 if cell["parameters"]["INIT"] == "0" else None


def shape_of(cell):
    """Return the number of rows of a memory, and the width of a row in bits."""
    return number(cell, "SIZE"), number(cell, "WIDTH")


def ports_of(cell, ports, memory, rows):
    """Return the ports of a memory as variables and registers.

    Parameters
    ----------
    cell : dict
        The cell as Yosys writes it.
    ports : dict of str to Bits
        Bits that its ports connect.
    memory : str
        Name of the memory.
    rows : list of str
        Names of the signals that the read ports drive.

    Returns
    -------
    variables : dict of str to Expression
        Read ports without a clock.
    registers : list of Register
        Read ports with a clock, and write ports.

    Raises
    ------
    UnknownNetlist
        If the memory uses a feature that the rewriter does not know.
    """
    check(cell, ports)
    variables, registers = {}, []
    for place, name in enumerate(rows):
        port = read_port(cell, ports, place, memory, name)
        if isinstance(port, Register):
            registers.append(port)
        else:
            variables[name] = port
    for place in range(number(cell, "WR_PORTS")):
        registers += write_port(cell, ports, place, memory)
    return variables, registers


# Read Yosys' JSON netlist as modules.
#
# Yosys numbers the bits of a module and lists the bit numbers that each port of each cell connects.


#: Cell type of a memory together with all of its ports.
MEMORY = "$mem_v2"
#: Cell types without a function.
IGNORED = {"$scopeinfo"}


def read_netlist(text):
    """Return the modules of a netlist by their names.

    Raises
    ------
    UnknownNetlist
        If the netlist contains an unknown cell, or is not a netlist of Yosys.
    """
    try:
        found = json.loads(text)["modules"]
        kinds = {name: module["ports"] for name, module in found.items()}
        return {name: Reader(name, module, kinds).module for name, module in found.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise UnknownNetlist(f"no netlist of Yosys ({error!r})") from error


def plain(name):
    """Return a name with every character replaced that a Verilog identifier may not contain."""
    return re.sub(r"\W", "_", name)


class Reader:
    """Reader of one module.

    Parameters
    ----------
    name : str
        Name of the module.
    found : dict
        The module as Yosys writes it.
    kinds : dict of str to dict
        Ports of all modules, by module name.

    Attributes
    ----------
    module : Module
        The module that was read.
    """

    def __init__(self, name, found, kinds):
        self.found, self.kinds = found, kinds
        directions = {port: of["direction"] for port, of in found["ports"].items()}
        self.module = Module(name, directions)
        self.drivers = {}  # by bit number: name of the signal and position of the bit in it
        self.names, self.initial = {}, {}
        outputs = self.ports()
        self.look_at_names(outputs)
        cells = [cell for cell in found["cells"].items() if cell[1]["type"] not in IGNORED]
        driven = [self.declare(place, cell) for place, cell in cells]
        for (place, cell), signals in zip(cells, driven, strict=True):
            self.read(place, cell, signals)
        self.module.outputs = {port: self.bits(bits) for port, bits in outputs.items()}

    def ports(self):
        """Declare the input ports; return the bits of the output ports."""
        outputs = {}
        for port, of in self.found["ports"].items():
            if of["direction"] == "input":
                self.drive(port, of["bits"])
            elif of["direction"] == "output":
                outputs[port] = of["bits"]
            else:
                raise UnknownNetlist(f"a port that is {of['direction']}")
        return outputs

    def look_at_names(self, outputs):
        """Record the names of bits, and the initial values of registers."""
        for name, net in self.found["netnames"].items():
            if not net.get("hide_name"):
                self.names.setdefault(tuple(net["bits"]), plain(name))
            init = net.get("attributes", {}).get("init")
            if init:
                self.initial.update(zip(net["bits"], reversed(init), strict=False))
        self.shown = {tuple(bits): port for port, bits in reversed(outputs.items())}

    def drive(self, name, bits, **about):
        """Declare the signal that drives the given bits; return its name."""
        self.module.signals[name] = Signal(len(bits), **about)
        self.drivers.update((bit, (name, place)) for place, bit in enumerate(bits))
        return name

    def own_name(self, bits, fallback):
        """Return a name for a signal: the netlist's name of its bits, or else ``fallback``."""
        taken = ChainMap(self.module.signals, self.found["ports"])
        return unused(self.names.get(tuple(bits), fallback), taken)

    def declare(self, place, cell):
        """Declare the signals that a cell drives; return their names."""
        kind, connections = cell["type"], cell["connections"]
        if kind in self.kinds:
            return [
                self.drive(
                    unused(f"{plain(place)}_{port}", self.module.signals),
                    connections[port],
                )
                for port in self.outputs_of(kind, connections)
            ]
        if kind == MEMORY:
            return self.declare_memory(cell)
        if kind in CLOCKED:
            return [self.declare_register(connections["Q"])]
        if "Y" not in connections:
            raise UnknownNetlist(f"a cell of type {kind}")
        bits = connections["Y"]
        return [self.drive(self.own_name(bits, f"wire_{bits[0]}"), bits)]

    def declare_memory(self, cell):
        """Declare a memory and a signal for each of its read ports; return their names."""
        memory = self.own_name((), plain(cell["parameters"]["MEMID"].removeprefix("\\")))
        rows, width = shape_of(cell)
        self.module.signals[memory] = Signal(width, initial_of(cell), rows)
        bits = cell["connections"]["RD_DATA"]
        parts = [bits[start : start + width] for start in range(0, len(bits), width)]
        return [
            memory,
            *(self.drive(self.own_name(p, f"{memory}_row"), p) for p in parts),
        ]

    def declare_register(self, bits):
        """Declare a register and return its name: that of its output port, if it has one."""
        start = "".join(self.initial.get(bit, "x") for bit in reversed(bits))
        initial = int(start.replace("x", "0"), 2) if start.strip("x") else None
        port = self.shown.get(tuple(bits))
        if port is None or port in self.module.signals:
            port = self.own_name(bits, f"register_{bits[0]}")
        return self.drive(port, bits, initial=initial)

    def outputs_of(self, kind, connections):
        """Return the output ports of a module that an instance connects."""
        ports = self.kinds[kind].items()
        return [name for name, of in ports if of["direction"] == "output" and name in connections]

    def read(self, place, cell, signals):
        """Add a cell, which drives ``signals``, to the module."""
        kind, module = cell["type"], self.module
        ports = {name: self.bits(bits) for name, bits in cell["connections"].items()}
        if kind in self.kinds:
            outputs = dict(zip(self.outputs_of(kind, ports), signals, strict=True))
            inputs = {port: bits for port, bits in ports.items() if port not in outputs}
            module.instances.append(Instance(kind, plain(place), inputs, outputs))
        elif kind == MEMORY:
            variables, registers = ports_of(cell, ports, signals[0], signals[1:])
            module.variables |= variables
            module.registers += registers
        elif kind in CLOCKED:
            module.registers.append(register(cell, signals[0], ports))
        else:
            module.variables[signals[0]] = expression(cell, ports)

    def bits(self, numbers):
        """Return bits by their numbers. Undefined bits and bits without a driver are zero."""
        runs = []
        for bit in numbers:
            if bit in self.drivers:
                runs.append(Run(*self.drivers[bit], 1))
            else:
                runs.append(Run(None, int(bit == "1"), 1))
        return Bits.of(runs)
