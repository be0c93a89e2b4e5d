# SPDX-License-Identifier: Apache-2.0
"""Wide signals of a netlist, cut where their fields are.

What is wider than a machine word costs several words to copy, and shifts to put together and take
apart. Most of such signals are structures that are only passed on: through registers, multiplexers
and concatenations. They become as many variables as they have fields, so nothing of that is left.
"""

from itertools import pairwise

from .bits import Bits
from .netlist import Clause, Register, Signal, Target, unused

__all__ = ["cut_fields"]

#: Bits of a machine word.
WORD = 64


def cut_fields(logic):
    """Cut wide variables and registers into their fields.

    Parameters
    ----------
    logic : Logic
        Of a module; changed.
    """
    drivers = passing(logic)
    cuts = {name: {0, logic.signals[name].width} for name in drivers}
    for bits in logic.reads():
        for run in bits.runs:
            if run.name in cuts:
                cuts[run.name] |= {run.low, run.low + run.width}
    links = links_of(drivers, cuts)
    spread(cuts, links)
    join(cuts, links)
    fields = {name: fields_of(name, cuts[name], logic.signals) for name in drivers}
    replace_variables(logic, fields)
    replace_registers(logic, fields)
    logic.substitute({name: Bits.of(run for bits in found for run in bits.runs)
                      for name, found in fields.items()})  # fmt: skip


def passing(logic):
    """Return, for every wide signal that only passes bits on, the expressions that do."""
    signals = logic.signals
    drivers = {name: [value] for name, value in logic.variables.items()}
    for register in logic.registers:
        if register.name not in logic.ports and signals[register.name].rows is None:
            drivers[register.name] = [clause.value for clause in register.clauses]
    return {
        name: found
        for name, found in drivers.items()
        if signals[name].width > WORD and all(value.passed is not None for value in found)
    }


def fields_of(name, cuts, signals):
    """Declare the fields of a signal; return each as bits, the lowest first."""
    signal, fields = signals.pop(name), []
    for low, above in pairwise(sorted(cuts)):
        field, initial = unused(f"{name}_{above - 1}_{low}", signals), None
        if signal.initial is not None:
            initial = signal.initial >> low & (1 << above - low) - 1
        signals[field] = Signal(above - low, initial)
        fields.append(Bits.whole(field, above - low))
    return fields


def places(fields):
    """Yield name, lowest bit and width of each field of a signal."""
    low = 0
    for bits in fields:
        yield bits.runs[0].name, low, bits.width
        low += bits.width


def replace_variables(logic, fields):
    """Replace variables by one for each field."""
    for name in [name for name in logic.variables if name in fields]:
        value = logic.variables.pop(name)
        for field, low, width in places(fields[name]):
            logic.variables[field] = value.part(low, width)


def replace_registers(logic, fields):
    """Replace registers by one for each field."""
    registers, logic.registers = logic.registers, []
    for register in registers:
        if register.name not in fields:
            logic.registers.append(register)
            continue
        for field, low, width in places(fields[register.name]):
            clauses = [
                Clause(clause.condition, Target(field), clause.value.part(low, width))
                for clause in register.clauses
            ]
            logic.registers.append(Register(register.clock, clauses))


def links_of(drivers, cuts):
    """Return which bits of wide signals are the same: two names, and low bits and size.

    A signal is cut where bits of different signals meet in it.
    """
    links = []
    for name, expressions in drivers.items():
        for bits in [bits for value in expressions for bits in value.passed]:
            low = 0
            for run in bits.runs:
                cuts[name] |= {low, low + run.width} if len(bits.runs) > 1 else set()
                if run.name in cuts:
                    links.append((name, low, run.name, run.low, run.width))
                low += run.width
    return links


def spread(cuts, links):
    """Cut what is passed on wherever what it comes from, or what it becomes, is cut."""
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
    """Take back cuts wherever what they separate fits in a machine word together."""
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
    """Is a cut one between two fields that fit in a machine word together?"""
    below = max((other for other in bits if other < bit), default=None)
    above = min((other for other in bits if other > bit), default=None)
    return below is not None and above is not None and above - below <= WORD
