# SPDX-License-Identifier: Apache-2.0
"""Passes over a flat module: flattening, the clock, fields, masks, and what nobody reads."""

from dataclasses import replace
from itertools import pairwise

from .netlist import (
    Bits,
    Expression,
    Instance,
    Module,
    Register,
    Run,
    Signal,
    Target,
    UnknownNetlist,
    unused,
)

__all__ = [
    "cut_fields",
    "cut_inputs",
    "drop_inputs",
    "drop_unread",
    "drop_unread_inputs",
    "find_clock",
    "flatten",
    "shift_masks",
]


# Flatten the module hierarchy, except for the instances of chosen modules.


def flatten(modules, name, stay):
    """Return the module ``name`` with all instances flattened, except those of modules that stay.

    Parameters
    ----------
    modules : dict of str to Module
    name : str
    stay : set of str
        Names of the modules that are not flattened.
    """
    return Flattening(modules, name, stay).flat


class Flattening:
    """Flattens the contents of instances into one module.

    An input port of an instance stands for bits of the module around it, and an output port stands
    for bits of the module inside. Both are recorded in ``sources`` while the instances are placed,
    and replaced everywhere once all instances are placed.
    """

    def __init__(self, modules, name, stay):
        self.modules, self.stay = modules, stay
        self.flat = Module(name, modules[name].ports)
        self.sources = {}
        _, self.flat.outputs = self.place(modules[name], "")
        settled = {}
        for source in self.sources:
            self.settle(source, settled)
            del self.flat.signals[source]
        self.flat.substitute(settled)

    def place(self, module, prefix):
        """Add the contents of a module to the flat module.

        Returns the new names of its signals, by their old names, and the bits of its outputs.
        """
        flat = self.flat
        names = {}
        for name, signal in module.signals.items():
            names[name] = unused(prefix + name, flat.signals)
            flat.signals[names[name]] = signal
        new = {
            name: Bits.whole(names[name], signal.width)
            for name, signal in module.signals.items()
            if names[name] != name
        }
        for name, value in module.variables.items():
            flat.variables[names[name]] = value.substitute(new)
        flat.registers += [register.substitute(new) for register in module.registers]
        for instance in module.instances:
            inputs = {port: bits.substitute(new) for port, bits in instance.inputs.items()}
            outputs = {port: names[signal] for port, signal in instance.outputs.items()}
            place = prefix + instance.place
            if instance.kind in self.stay:
                flat.instances.append(Instance(instance.kind, place, inputs, outputs))
                continue
            inner, shown = self.place(self.modules[instance.kind], f"{place}_")
            self.sources |= {inner[port]: bits for port, bits in inputs.items()}
            self.sources |= {signal: shown[port] for port, signal in outputs.items()}
        return names, {port: bits.substitute(new) for port, bits in module.outputs.items()}

    def settle(self, name, settled):
        """Record the bits of the flat module that a port of an instance finally stands for."""
        if name not in settled:
            bits = self.sources[name]
            inner = {other: self.settle(other, settled)
                     for other in bits.names if other in self.sources}  # fmt: skip
            settled[name] = bits.substitute(inner)
        return settled[name]


def find_clock(module):
    """Name the clock of a flat module, and leave its outputs that are registers to the registers.

    Raises
    ------
    UnknownNetlist
        If the registers have several clocks, or a clock that is not an input port.
    """
    clocks = {register.clock for register in module.registers}
    names = {name for bits in clocks for name in bits.names}
    if len(clocks) != 1 or len(names) != 1 or not names <= module.ports.keys():
        raise UnknownNetlist(f"registers with the clocks {sorted(names)}")
    module.clock = names.pop()
    for register in module.registers:
        module.outputs.pop(register.name, None)


# Cut wide signals of a netlist at the borders of their fields.
#
# A signal wider than a machine word costs several word copies, and shifts to assemble it and to
# take it apart. Most of these signals are structures that are only passed on: through registers,
# multiplexers, concatenations, rows of memories and inputs of modules. Each becomes one variable,
# memory or input per field, which avoids these costs.


#: Bits of a machine word.
WORD = 64


def cut_fields(module, *, inputs):
    """Cut wide variables, registers and memories into their fields.

    Parameters
    ----------
    module : Module
        Flat module, which is changed.
    inputs : bool
        Whether to cut inputs of the module as well.

    Returns
    -------
    dict of str to list of (str, int, int)
        For each input that was cut: name, lowest bit and width of every field.
    """
    drivers = passing(module)
    if inputs:
        drivers |= wide_inputs(module)
    cuts = {name: {0, module.signals[name].width} for name in drivers}
    for bits in module.reads():
        for run in bits.runs:
            if run.name in cuts:
                cuts[run.name] |= {run.low, run.low + run.width}
    links = links_of(drivers, cuts, module.signals)
    spread(cuts, links)
    join(cuts, links)
    fields = {name: fields_of(name, cuts[name], module.signals) for name in drivers}
    replace_variables(module, fields)
    replace_registers(module, fields)
    module.substitute({name: Bits.of(run for bits in found for run in bits.runs)
                      for name, found in fields.items()})  # fmt: skip
    cut = {name: list(places(found)) for name, found in fields.items() if name in module.ports}
    replace_ports(module, cut)
    return cut


def cut_inputs(module, cut):
    """Connect the inputs of instances field by field if the module's inputs have been cut.

    Parameters
    ----------
    module : Module
        Flat module, which is changed.
    cut : dict of str to dict
        Results of :func:`cut_fields`, by the name of the instantiated module.
    """
    for instance in module.instances:
        fields, whole = cut.get(instance.kind, {}), instance.inputs
        instance.inputs = {
            field: bits.part(low, width)
            for port, bits in whole.items()
            for field, low, width in fields.get(port, [(port, 0, bits.width)])
        }


def wide_inputs(module):
    """Return the wide inputs in the form of :func:`passing`, as signals without a driver."""
    ports = module.ports.items()
    return {name: [] for name, way in ports if way == "input" and module.signals[name].width > WORD}


def replace_ports(module, cut):
    """Replace each port that was cut by one port per field."""
    ports = dict(module.ports)
    module.ports.clear()
    for name, way in ports.items():
        module.ports |= dict.fromkeys([field for field, _, _ in cut.get(name, [(name, 0, 0)])], way)


def passing(module):
    """Return the wide signals that only pass bits on, with the expressions that drive them.

    Each driver is a pair: the lowest bit that it assigns, and the expression that it assigns.
    """
    signals = module.signals
    drivers = {name: [(0, value)] for name, value in module.variables.items()}
    drivers |= {name: [] for name, signal in signals.items() if signal.rows is not None}
    for register in module.registers:
        if register.name not in module.ports:
            values = [(clause.target.low, clause.value) for clause in register.clauses]
            drivers.setdefault(register.name, []).extend(values)
    return {
        name: found
        for name, found in drivers.items()
        if signals[name].width > WORD
        and all(passed(value, signals) is not None for _, value in found)
    }


def passed(value, signals):
    """Return the bits that an expression passes on unchanged; None if it computes a new value."""
    if value.kind == "row":
        return (Bits.whole(value.memory, signals[value.memory].width),)
    return value.passed


def fields_of(name, cuts, signals):
    """Declare the fields of a signal; return each field as bits, the lowest first."""
    signal, fields = signals.pop(name), []
    for low, above in pairwise(sorted(cuts)):
        field, initial = unused(f"{name}_{above - 1}_{low}", signals), None
        if signal.initial is not None:
            initial = signal.initial >> low & (1 << above - low) - 1
        signals[field] = Signal(above - low, initial, signal.rows)
        fields.append(Bits.whole(field, above - low))
    return fields


def places(fields):
    """Yield name, lowest bit and width of each field of a signal."""
    low = 0
    for bits in fields:
        yield bits.runs[0].name, low, bits.width
        low += bits.width


def part_of(value, low, width, fields):
    """Return ``width`` bits, from bit ``low`` up, of an expression that only passes bits on."""
    if value.kind != "row":
        return value.part(low, width)
    memory = next(name for name, first, _ in places(fields[value.memory]) if first == low)
    return replace(value, memory=memory)


def replace_variables(module, fields):
    """Replace each variable that was cut by one variable per field."""
    for name in [name for name in module.variables if name in fields]:
        value = module.variables.pop(name)
        for field, low, width in places(fields[name]):
            module.variables[field] = part_of(value, low, width, fields)


def replace_registers(module, fields):
    """Replace each register and each memory write that was cut by one per field."""
    registers, module.registers = module.registers, []
    for register in registers:
        if register.name not in fields:
            module.registers.append(register)
            continue
        for field, low, width in places(fields[register.name]):
            clauses = [field_clause(clause, field, low, width, fields)
                       for clause in register.clauses]  # fmt: skip
            clauses = [clause for clause in clauses if clause is not None]
            if clauses:
                module.registers.append(Register(register.clock, clauses))


def field_clause(clause, field, low, width, fields):
    """Return the part of a clause that assigns a field; None if the clause writes other bits."""
    target = clause.target
    if not target.width:
        return replace(
            clause, target=Target(field), value=part_of(clause.value, low, width, fields)
        )
    first, end = max(low, target.low), min(low + width, target.low + target.width)
    if first >= end:
        return None
    return replace(
        clause,
        target=Target(field, target.address, first - low, end - first),
        value=clause.value.part(first - target.low, end - first),
    )


def links_of(drivers, cuts, signals):
    """Return links between equal bits of wide signals: two names, two lowest bits, and a width.

    Adds a cut wherever bits of different signals meet in a signal.
    """
    links = []
    for name, found in drivers.items():
        whole = signals[name].width
        for low, bits in [(low, bits) for low, value in found for bits in passed(value, signals)]:
            for run in bits.runs:
                cuts[name] |= {low, low + run.width} if run.width < whole else set()
                if run.name in cuts:
                    links.append((name, low, run.name, run.low, run.width))
                low += run.width
    return links


def spread(cuts, links):
    """Copy cuts along the links until linked bits have the same cuts at both ends."""
    changed = True
    while changed:
        changed = False
        for one, low, other, last, size in links:
            here = {bit - low for bit in cuts[one] if low <= bit <= low + size}
            there = {bit - last for bit in cuts[other] if last <= bit <= last + size}
            if here != there:
                cuts[one] |= {bit + low for bit in there}
                cuts[other] |= {bit + last for bit in here}
                changed = True


def join(cuts, links):
    """Remove cuts between fields that fit in one machine word in all linked signals."""
    parents = {}

    def root(cut):
        while parents.setdefault(cut, cut) != cut:
            cut = parents[cut]
        return cut

    for one, low, other, last, size in links:
        for bit in cuts[one]:
            if low <= bit <= low + size:
                parents[root((one, bit))] = root((other, bit - low + last))
    classes = {}
    for name, bits in cuts.items():
        for bit in sorted(bits):
            classes.setdefault(root((name, bit)), []).append((name, bit))
    for members in classes.values():
        if all(joinable(cuts[name], bit) for name, bit in members):
            for name, bit in members:
                cuts[name].discard(bit)


def joinable(bits, bit):
    """Return whether a cut separates two fields that together fit in a machine word."""
    below = max((other for other in bits if other < bit), default=None)
    above = min((other for other in bits if other > bit), default=None)
    return below is not None and above is not None and above - below <= WORD


# Compute masks of the lowest bits as a whole, instead of bit by bit.
#
# A circuit makes a mask of the ``w`` lowest bits with one comparison per bit: bit n is ``n < w``. A
# processor needs a shift for the whole mask, and none to put its bits together.


#: Bits from which a mask is worth a shift.
LEAST = 4


def shift_masks(module):
    """Replace the bits of masks, wherever four or more of them stand side by side.

    Parameters
    ----------
    module : Module
        Flat module, which is changed.
    """
    places = {}
    for name, value in module.variables.items():
        place = place_of(value)
        if place is not None and module.signals[name].width == 1:
            places[name] = place
    if places:
        Masks(module, places).replace()


def place_of(value):
    """Return the number of a mask's bit and the mask's width, as bits; None for anything else."""
    if value.kind not in ("$lt", "$gt") or value.signed:
        return None
    number, width = value.operands if value.kind == "$lt" else reversed(value.operands)
    return None if number.value is None or width.value is not None else (number.value, width)


class Masks:
    """The masks of a module, one for each width that bits are compared with.

    Parameters
    ----------
    module : Module
    places : dict of str to (int, Bits)
        Number and width of each variable that is a bit of a mask.
    """

    def __init__(self, module, places):
        self.module, self.places = module, places
        self.names = {}
        self.sizes = {}  # bits of each mask
        for number, width in places.values():
            self.sizes[width] = max(self.sizes.get(width, 0), number + 1)

    def replace(self):
        """Replace the bits in all expressions of the module."""
        module = self.module
        for name, value in list(module.variables.items()):  # masks are added meanwhile
            module.variables[name] = self.masked(value)
        for register in module.registers:
            register.clauses = [
                replace(clause, value=self.masked(clause.value)) for clause in register.clauses
            ]

    def masked(self, value):
        """Return an expression that reads masks as a whole."""
        operands = tuple(map(self.joined, value.operands))
        return value if operands == value.operands else replace(value, operands=operands)

    def joined(self, bits):
        """Return bits with each sequence of a mask's bits as one run."""
        if len(bits.runs) < LEAST:
            return bits
        found, sequence = [], []
        for run in bits.runs:
            if sequence and not self.follows(sequence[-1], run):
                found += self.whole(sequence)
                sequence = []
            sequence.append(run)
        return Bits.of([*found, *self.whole(sequence)])

    def follows(self, below, run):
        """Return whether two runs are neighbouring bits of a mask."""
        if below.name not in self.places or run.name not in self.places:
            return False
        number, width = self.places[below.name]
        return self.places[run.name] == (number + 1, width)

    def whole(self, runs):
        """Return the runs of a sequence of a mask's bits as one run if they are worth it."""
        if len(runs) < LEAST:
            return runs
        number, width = self.places[runs[0].name]
        return [Run(self.mask(width), number, len(runs))]

    def mask(self, width):
        """Return the variable that is the mask of a width, which is declared when first used."""
        if width not in self.names:
            above, mask = self.new("above", width), self.new("mask", width)
            ones = Bits.constant((1 << self.sizes[width]) - 1, self.sizes[width])
            self.module.variables[above] = Expression("$shl", (ones, width))
            whole = Bits.whole(above, self.sizes[width])
            self.module.variables[mask] = Expression("$not", (whole,))
            self.names[width] = mask
        return self.names[width]

    def new(self, name, width):
        """Declare a variable for a mask."""
        found = unused(name, self.module.signals)
        self.module.signals[found] = Signal(self.sizes[width])
        return found


# Remove registers and inputs whose value never reaches an output or another module.
#
# Yosys removes logic that is unused inside one module. Registers that are unused across modules, or
# that only feed back into themselves, are visible only in the flat module.


def drop_unread(module):
    """Remove the variables and registers that no output and no input of an instance depends on.

    Parameters
    ----------
    module : Module
        Flat module, which is changed.
    """
    writers = {}
    for register in module.registers:
        writers.setdefault(register.name, []).append(register)
    found = set()
    waiting = {name for name, direction in module.ports.items() if direction == "output"}
    waiting.update(*(bits.names for bits in module.shows()))
    while waiting:
        name = waiting.pop()
        found.add(name)
        if name in module.variables:
            waiting |= module.variables[name].names - found
        for register in writers.get(name, ()):
            for clause in register.clauses:
                waiting |= (clause.condition.names | clause.read) - found
    module.variables = {name: value for name, value in module.variables.items() if name in found}
    module.registers = [register for register in module.registers if register.name in found]


def drop_unread_inputs(module):
    """Remove the inputs that nothing in a module depends on; return their names.

    A module that gets its reset another way still has the accelerator's reset as an input. As soon
    as any logic hangs on an input of the accelerator, Verilator looks for changes of all inputs.

    Parameters
    ----------
    module : Module
        Flat module, which is changed.
    """
    read = {name for bits in module.reads() for name in bits.names} | {module.clock}
    unread = {name for name, way in module.ports.items() if way == "input" and name not in read}
    for name in unread:
        del module.ports[name], module.signals[name]
    return unread


def drop_inputs(module, unread):
    """Disconnect the inputs of instances that were removed from the instances' modules.

    Parameters
    ----------
    module : Module
        Flat module, which is changed.
    unread : dict of str to set of str
        Names that :func:`drop_unread_inputs` returned, by the name of the instantiated module.
    """
    for instance in module.instances:
        gone = unread.get(instance.kind, ())
        instance.inputs = {port: bits for port, bits in instance.inputs.items() if port not in gone}
