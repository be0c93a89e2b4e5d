# SPDX-License-Identifier: Apache-2.0
"""Paths between clocks: those that components declare, held against all that a netlist has.

A component in which registers of one clock read those of another one has an attribute
``crossings``, a tuple of :class:`Crossing`. :func:`inspect_crossings` looks at every register of a
netlist and at everything that it reads: a path between clocks that no component declares is a
fault, and so is a declared one that is not built as its kind asks for. The constraints of a package
(:mod:`hdl.packaging.integrations`) are written from what it returns.
"""

from dataclasses import dataclass, field
from itertools import count
import re

from amaranth.hdl import Fragment

from hdl.verilog.conversion import plain

__all__ = [
    "KINDS", "Crossing", "Inspection", "Kind", "ListedCrossing", "UnlistedCrossing",
    "inspect_crossings",
]  # fmt: skip


class UnlistedCrossing(ValueError):
    """A design has paths between clocks that are not declared, or not built as declared."""


@dataclass(frozen=True)
class Kind:
    """What makes a way of crossing between clocks safe.

    Parameters
    ----------
    description : str
        What the two sides do, in words for constraints and pages.
    bound : str or None
        Clock whose period bounds the delay, ``"source"`` or ``"target"``; None if any delay will
        do.
    synchronized : bool
        Whether each bit goes directly from a register, or from a pin, into a register that only the
        next one reads.
    single : bool
        Whether there is one bit only.
    asynchronous : bool
        Whether the target is the asynchronous reset of registers.
    """

    description: str
    bound: str | None = None
    synchronized: bool = False
    single: bool = False
    asynchronous: bool = False


#: Ways of crossing, by the name that a component gives them.
KINDS = {
    "level": Kind("a level, through a synchronizer", synchronized=True, single=True),
    "gray": Kind(
        "a Gray counter, of which one bit changes at a time, through synchronizers",
        bound="source", synchronized=True,
    ),
    "held": Kind("values that stand still while they are read", bound="target"),
    "rows": Kind("rows of a memory that are not written while they are read", bound="target"),
    "reset": Kind("an asynchronous reset whose end is synchronized", asynchronous=True),
}  # fmt: skip


@dataclass(frozen=True)
class Crossing:
    """A declaration: registers of one clock that registers of another one read.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    targets : tuple of str
        Registers that read, by their names in the Verilog, from the component on:
        ``"asking/stage0"`` is the register ``stage0`` of the submodule ``asking``.
    sources : tuple of str
        Registers that are read; empty if it is whatever drives the component, such as a pin.
    """

    kind: str
    targets: tuple[str, ...]
    sources: tuple[str, ...] = ()

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"Kind of a crossing must be {', '.join(KINDS)}, not {self.kind!r}")


@dataclass(frozen=True)
class ListedCrossing:
    """A declared crossing as a netlist has it.

    Parameters
    ----------
    kind : Kind
    sources, targets : tuple of str
        Full names of the registers, or of the port that is read: ``"crossing/asking_2/stage0"``.
    stages : tuple of str
        Registers of its synchronizers, the targets among them.
    source_clock : str or None
        Clock of the sources, by the name of its port; None of a pin that belongs to none.
    target_clock : str
    """

    kind: Kind
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    stages: tuple[str, ...]
    source_clock: str | None
    target_clock: str


@dataclass(frozen=True)
class Inspection:
    """What there is between the clocks of a netlist.

    Parameters
    ----------
    clocks : tuple of str
        Ports that clock any register.
    listed : tuple of ListedCrossing
        The declared crossings, each with a path.
    unlisted : tuple of str
        A line for each path that is not declared.
    faults : tuple of str
        A line for each declared crossing that is not there, or not built as its kind asks for.
    """

    clocks: tuple[str, ...]
    listed: tuple[ListedCrossing, ...]
    unlisted: tuple[str, ...]
    faults: tuple[str, ...]

    def check(self):
        """Raise :exc:`UnlistedCrossing` unless every path between clocks is a declared one."""
        if self.unlisted or self.faults:
            raise UnlistedCrossing(
                "; ".join((*self.unlisted, *self.faults)) + ": lead the signal through a component "
                "that declares it in `crossings` (hdl.crossings), or keep it in its clock"
            )


@dataclass(frozen=True)
class Register:
    """A bit that is kept from one edge of a clock to the next.

    Parameters
    ----------
    clock : int
        Bit of the clock.
    reads : tuple of int
        Bits that are looked at when the clock rises; of a flip-flop, its data first.
    resets : tuple of int
        Bits that act at once.
    place : str
        Path of the instance that it is in.
    """

    clock: int
    reads: tuple[int, ...]
    resets: tuple[int, ...]
    place: str


#: Cells whose output bits each depend on the input bits of the same place only.
BITWISE = frozenset(("$and", "$or", "$xor", "$xnor", "$not", "$pos", "$mux"))
#: Inputs of registers that act without the clock.
ASYNCHRONOUS = frozenset(("ARST", "ALOAD", "AD", "SET", "CLR"))
#: Begins the names of the types of registers.
REGISTERS = re.compile(r"\$(s?dff|adff|aldff|dffsr)")


@dataclass
class FlatNetlist:
    """A netlist of Yosys' JSON without its hierarchy: bits, and what decides each.

    Parameters
    ----------
    modules : dict
        ``modules`` of the JSON.
    top : str
        Name of the top module.

    Attributes
    ----------
    logic : dict of int to tuple of int
        Bits by which a bit is decided in the same cycle.
    registers : dict of int to Register
    ports : dict of str to (str, tuple of int)
        Direction and bits of the ports of the top module.
    names : dict of str to dict of str to tuple of int
        Named signals and memories of the instance with a path.
    """

    modules: dict
    top: str
    logic: dict = field(default_factory=dict)
    registers: dict = field(default_factory=dict)
    ports: dict = field(default_factory=dict)
    names: dict = field(default_factory=dict)

    def __post_init__(self):
        self._numbers = count()
        bits = {}
        self.ports = {
            name: (port["direction"], self._flat(port["bits"], bits))
            for name, port in self.modules[self.top]["ports"].items()
        }
        waiting = [(self.top, "", bits)]
        while waiting:
            waiting += self._add(*waiting.pop())

    def _flat(self, local, bits):
        """Return the numbers of bits of a module, None for constants."""
        return tuple(
            None if isinstance(bit, str)
            else bits[bit] if bit in bits
            else bits.setdefault(bit, next(self._numbers))
            for bit in local
        )  # fmt: skip

    def _add(self, name, path, bits):
        """Add the cells of an instance of a module; return its own instances."""
        module, instances = self.modules[name], []
        names = self.names[path] = {}
        for cell_name, cell in module["cells"].items():
            pins = {pin: self._flat(wires, bits) for pin, wires in cell["connections"].items()}
            kind = cell["type"]
            if kind in self.modules:
                inner = self._join(self.modules[kind], pins)
                instances.append((kind, f"{path}{cell_name}/", inner))
            elif REGISTERS.match(kind):
                self._add_register(pins, path)
            elif kind == "$mem_v2":
                memory = cell["parameters"]["MEMID"].removeprefix("\\")
                names[memory] = self._add_memory(pins, cell["parameters"], path)
            elif kind.startswith("$"):
                self._add_logic(kind, pins)
            else:
                raise UnlistedCrossing(
                    f"Cell {path}{cell_name} is a {kind}, of which nobody knows the clocks; "
                    "look at a netlist without primitives"
                )
        for signal, about in module["netnames"].items():
            if not about.get("hide_name"):
                names[signal] = self._flat(about["bits"], bits)
        return instances

    def _join(self, module, pins):
        """Return the numbers of the bits of an instance's ports."""
        inner = {}
        for direction in ("input", "output"):
            for name, port in module["ports"].items():
                outer = pins.get(name, ())
                if port["direction"] != direction or not outer:
                    continue
                for local, bit in zip(port["bits"], outer, strict=True):
                    if bit is not None and direction == "output" and local in inner:
                        self.logic[bit] = (inner[local],)
                    elif not isinstance(local, str):
                        inner[local] = bit
        return inner

    def _add_register(self, pins, path):
        shared = [
            bit for pin, wires in pins.items() for bit in wires
            if pin not in ("CLK", "D", "Q") and pin not in ASYNCHRONOUS
        ]  # fmt: skip
        resets = tuple(bit for pin in ASYNCHRONOUS for bit in pins.get(pin, ()))
        (clock,) = pins["CLK"]
        for data, output in zip(pins["D"], pins["Q"], strict=True):
            self.registers[output] = Register(clock, (data, *shared), resets, path)

    def _add_memory(self, pins, parameters, path):
        """Add a memory; return the bits that stand for its contents, and its registered outputs."""
        width, address = int(parameters["WIDTH"], 2), int(parameters["ABITS"], 2)
        contents, registered = [], []
        for n, clock in enumerate(pins["WR_CLK"]):
            contents.append(next(self._numbers))
            reads = (
                *pins["WR_EN"][n * width : (n + 1) * width],
                *pins["WR_ADDR"][n * address : (n + 1) * address],
                *pins["WR_DATA"][n * width : (n + 1) * width],
            )
            self.registers[contents[-1]] = Register(clock, reads, (), path)
        clocked = parameters["RD_CLK_ENABLE"][::-1]
        for n, clock in enumerate(pins["RD_CLK"]):
            reads = (*contents, *pins["RD_ADDR"][n * address : (n + 1) * address])
            for output in pins["RD_DATA"][n * width : (n + 1) * width]:
                if clocked[n] == "1":
                    looks = (*reads, pins["RD_EN"][n], pins["RD_SRST"][n])
                    self.registers[output] = Register(clock, looks, (pins["RD_ARST"][n],), path)
                    registered.append(output)
                else:
                    self.logic[output] = reads
        return (*contents, *registered)

    def _add_logic(self, kind, pins):
        outputs = pins.get("Y", ())
        inputs = [wires for pin, wires in pins.items() if pin != "Y"]
        if kind in BITWISE:
            for n, output in enumerate(outputs):
                self.logic[output] = tuple(wires[min(n, len(wires) - 1)] for wires in inputs)
        else:
            together = next(self._numbers)
            self.logic[together] = tuple(bit for wires in inputs for bit in wires)
            self.logic.update(dict.fromkeys(outputs, (together,)))

    def origin(self, bit):
        """Return the bit that a bit is a copy of, perhaps itself."""
        while bit not in self.registers and len(needs := self.logic.get(bit, ())) == 1:
            (bit,) = needs
        return bit

    def name(self, bit):
        """Return the full name of a register or of a port, by one of its bits."""
        register = self.registers.get(bit)
        place = "" if register is None else register.place
        named = (name for name, bits in self.names[place].items() if bit in bits)
        return f"{place}{next(named, '?')}"

    def instance(self, path):
        """Return the path of the one instance with such names, numbered or not.

        A submodule has a number if a signal beside it has its name.
        """
        found = ""
        for name in path:
            pattern = re.compile(rf"{re.escape(found)}{re.escape(name)}(_\d+)?/")
            (found,) = self.only(
                [each for each in self.names if pattern.fullmatch(each)], "/".join(path)
            )
        return found

    def stored(self, path, name):
        """Return full name and bits of the one register or memory with this name."""
        *parts, own = name.split("/")
        place = self.instance([*filter(None, path.split("/")), *parts])
        pattern = re.compile(rf"{re.escape(own)}(_\d+)?")
        found = self.only(
            [
                (f"{place}{each}", kept)
                for each, bits in self.names[place].items()
                if pattern.fullmatch(each)
                and (kept := [bit for bit in bits if bit in self.registers])
            ],
            f"{path}{name}",
        )
        return found[0]

    def only(self, found, name):
        """Return ``found``, a list of one.

        Raises
        ------
        UnlistedCrossing
            If it has none or several.
        """
        if len(found) != 1:
            raise UnlistedCrossing(
                f"A component declares the crossing of {name}, and there are {len(found)} of that "
                "name in the netlist; correct its `crossings`"
            )
        return found


class _Paths:
    """The bits between which there are paths from clock to clock."""

    def __init__(self, flat, clock_of):
        self.flat = flat
        clocks = {flat.origin(register.clock) for register in flat.registers.values()}
        inputs = {
            bit: name for name, (direction, bits) in flat.ports.items() if direction == "input"
            for bit in bits
        }  # fmt: skip
        strange = clocks - inputs.keys()
        if strange:
            raise UnlistedCrossing(
                f"{len(strange)} clocks come from logic, not from a port; divide no clock by logic"
            )
        self.clocks = sorted({inputs[bit] for bit in clocks})
        #: Clock of everything that begins a path.
        self.begins = {bit: clock_of(name) for bit, name in inputs.items() if bit not in clocks}
        self.begins |= dict.fromkeys(clocks)
        self.begins |= {
            bit: inputs[flat.origin(register.clock)] for bit, register in flat.registers.items()
        }
        self.numbers = {
            clock: 1 << n for n, clock in enumerate(dict.fromkeys(self.begins.values()))
        }
        self.reached = self._reached()

    def _reached(self):
        """Return the clocks that decide each bit: a set of numbers, as the bits of a number."""
        readers, reached = {}, {}
        for output, needs in self.flat.logic.items():
            for bit in needs:
                readers.setdefault(bit, []).append(output)
        for clock, number in self.numbers.items():
            waiting = [bit for bit, each in self.begins.items() if each == clock]
            while waiting:
                bit = waiting.pop()
                if not reached.get(bit, 0) & number:
                    reached[bit] = reached.get(bit, 0) | number
                    waiting += readers.get(bit, ())
        return reached

    def foreign(self, bits, clock):
        """Yield the bits that begin paths to ``bits`` in another clock than ``clock``."""
        waiting, seen = list(bits), set()
        own = self.numbers.get(clock, 0)
        while waiting:
            bit = waiting.pop()
            if bit is None or bit in seen or not self.reached.get(bit, 0) & ~own:
                continue
            seen.add(bit)
            if bit in self.begins:
                yield bit
            else:
                waiting += self.flat.logic.get(bit, ())

    def all(self, clock_of):
        """Yield source, target, clock of the target, and whether it is an asynchronous reset."""
        for target, register in self.flat.registers.items():
            clock = self.begins[target]
            for bits, at_once in ((register.reads, False), (register.resets, True)):
                for source in self.foreign(bits, clock):
                    yield source, target, clock, at_once
        for name, (direction, bits) in self.flat.ports.items():
            if direction == "output":
                for bit in bits:
                    for source in self.foreign([bit], clock_of(name)):
                        yield source, name, clock_of(name), False


def declared(component, fragment, path=()):
    """Yield the path of every component with crossings, as the netlist names it, and each of them.

    Parameters
    ----------
    component : object
        What was elaborated.
    fragment : Fragment
        What became of it.
    path : tuple of str
        Submodules down to it.
    """
    for crossing in getattr(component, "crossings", ()):
        yield path, crossing
    for child, name, _ in fragment.subfragments:
        # Beside the component, its module and the transformers around it.
        mine = (each for each in child.origins or () if hasattr(each, "crossings"))
        yield from declared(next(mine, None), child, (*path, plain(name or "")))


def inspect_crossings(component, netlist, *, name, clock_of):
    """Return what there is between the clocks of a design.

    Parameters
    ----------
    component : wiring.Component
        The design.
    netlist : dict
        Its netlist: ``modules`` of the JSON of :func:`hdl.verilog.conversion.to_netlist`.
    name : str
        Name of the top module.
    clock_of : callable
        Returns the port that clocks the port with a name, None if it belongs to no clock.

    Returns
    -------
    Inspection
    """
    flat = FlatNetlist(netlist, name)
    paths = _Paths(flat, clock_of)
    found = list(paths.all(clock_of))
    listed, faults, covered = [], [], set()
    if found:
        for path, crossing in declared(component, Fragment.get(component, None)):
            mine = _resolve(flat, paths, path, crossing, found)
            covered |= mine.pairs
            faults += mine.faults
            if mine.listed:
                listed.append(mine.listed)
    unlisted = {
        f"{flat.name(source)} ({paths.begins[source] or 'no clock'}) is read by "
        f"{target if isinstance(target, str) else flat.name(target)} ({clock or 'no clock'})": None
        for source, target, clock, _ in found if (source, target) not in covered
    }  # fmt: skip
    return Inspection(tuple(paths.clocks), tuple(listed), tuple(unlisted), tuple(faults))


@dataclass(frozen=True)
class _Resolved:
    """A crossing in a netlist: pairs of bits that it covers, what is wrong, and itself."""

    pairs: frozenset
    faults: tuple
    listed: ListedCrossing | None = None


def _resolve(flat, paths, path, crossing, found):
    """Return a declared crossing as the netlist has it."""
    kind, place = KINDS[crossing.kind], flat.instance(path)
    sources = dict(flat.stored(place, name) for name in crossing.sources)
    targets = dict(flat.stored(place, name) for name in crossing.targets)
    reading = {bit for bits in targets.values() for bit in bits}
    read = {bit for bits in sources.values() for bit in bits}
    mine = [
        (source, target) for source, target, _, at_once in found
        if target in reading and (not sources or source in read) and at_once == kind.asynchronous
    ]  # fmt: skip
    what = f"{crossing.kind} to {', '.join(targets)}"
    if not mine:
        return _Resolved(frozenset(), (f"{what}: declared, and no path is there",))
    faults, stages = [], dict.fromkeys(targets if kind.synchronized or kind.asynchronous else ())
    if kind.synchronized:
        if any(flat.origin(flat.registers[target].reads[0]) != source for source, target in mine):
            faults.append(f"{what}: logic in front of a synchronizer")
        readers = [
            bit for bit, register in flat.registers.items()
            if reading & {flat.origin(each) for each in register.reads if each is not None}
        ]  # fmt: skip
        behind = [bits for bits in flat.logic.values() if len(bits) > 1 and reading & {*bits}]
        if behind or len(readers) != len(reading):
            faults.append(f"{what}: the first register of a synchronizer has several readers")
        stages |= dict.fromkeys(flat.name(bit) for bit in readers)
    if kind.single and len(mine) > 1:
        faults.append(f"{what}: {len(mine)} paths, where a level has one bit")
    if not sources:
        sources = dict.fromkeys(flat.name(source) for source, _ in mine)
    (source, target), *_ = mine
    return _Resolved(
        frozenset(mine), tuple(dict.fromkeys(faults)),
        ListedCrossing(
            kind, tuple(sources), tuple(targets), tuple(stages), paths.begins[source],
            paths.begins[target],
        ),
    )  # fmt: skip
