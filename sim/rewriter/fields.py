# SPDX-License-Identifier: Apache-2.0
"""Cut wide signals of a netlist at the borders of their fields.

A signal wider than a machine word costs several word copies, and shifts to assemble it and to take
it apart. Most of these signals are structures that are only passed on: through registers,
multiplexers, concatenations, rows of memories and inputs of modules. Each becomes one variable,
memory or input per field, which avoids these costs.
"""

from dataclasses import replace
from itertools import pairwise

from .bits import Bits
from .netlist import Register, Signal, Target, unused

__all__ = ["cut_fields", "cut_inputs"]

#: Bits of a machine word.
WORD = 64


def cut_fields(logic, *, inputs):
    """Cut wide variables, registers and memories into their fields.

    Parameters
    ----------
    logic : Logic
        Logic of a module, which is changed.
    inputs : bool
        Whether to cut inputs of the module as well.

    Returns
    -------
    dict of str to list of (str, int, int)
        For each input that was cut: name, lowest bit and width of every field.
    """
    drivers = passing(logic)
    if inputs:
        drivers |= wide_inputs(logic)
    cuts = {name: {0, logic.signals[name].width} for name in drivers}
    for bits in logic.reads():
        for run in bits.runs:
            if run.name in cuts:
                cuts[run.name] |= {run.low, run.low + run.width}
    links = links_of(drivers, cuts, logic.signals)
    spread(cuts, links)
    join(cuts, links)
    fields = {name: fields_of(name, cuts[name], logic.signals) for name in drivers}
    replace_variables(logic, fields)
    replace_registers(logic, fields)
    logic.substitute({name: Bits.of(run for bits in found for run in bits.runs)
                      for name, found in fields.items()})  # fmt: skip
    cut = {name: list(places(found)) for name, found in fields.items() if name in logic.ports}
    replace_ports(logic, cut)
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


def wide_inputs(logic):
    """Return the wide inputs in the form of :func:`passing`, as signals without a driver."""
    ports = logic.ports.items()
    return {name: [] for name, way in ports if way == "input" and logic.signals[name].width > WORD}


def replace_ports(logic, cut):
    """Replace each port that was cut by one port per field."""
    ports = dict(logic.ports)
    logic.ports.clear()
    for name, way in ports.items():
        logic.ports |= dict.fromkeys([field for field, _, _ in cut.get(name, [(name, 0, 0)])], way)


def passing(logic):
    """Return the wide signals that only pass bits on, with the expressions that drive them.

    Each driver is a pair: the lowest bit that it assigns, and the expression that it assigns.
    """
    signals = logic.signals
    drivers = {name: [(0, value)] for name, value in logic.variables.items()}
    drivers |= {name: [] for name, signal in signals.items() if signal.rows is not None}
    for register in logic.registers:
        if register.name not in logic.ports:
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


def replace_variables(logic, fields):
    """Replace each variable that was cut by one variable per field."""
    for name in [name for name in logic.variables if name in fields]:
        value = logic.variables.pop(name)
        for field, low, width in places(fields[name]):
            logic.variables[field] = part_of(value, low, width, fields)


def replace_registers(logic, fields):
    """Replace each register and each memory write that was cut by one per field."""
    registers, logic.registers = logic.registers, []
    for register in registers:
        if register.name not in fields:
            logic.registers.append(register)
            continue
        for field, low, width in places(fields[register.name]):
            clauses = [field_clause(clause, field, low, width, fields)
                       for clause in register.clauses]  # fmt: skip
            clauses = [clause for clause in clauses if clause is not None]
            if clauses:
                logic.registers.append(Register(register.clock, clauses))


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
