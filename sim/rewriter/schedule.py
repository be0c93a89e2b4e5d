# SPDX-License-Identifier: Apache-2.0
"""The order in which one process computes variables and assigns registers."""

from collections import Counter
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from .netlist import ALWAYS, Signal, unused

__all__ = ["Copy", "Group", "Schedule", "reach"]

#: A condition that gives so many registers a constant is a reset.
RESETS = 4
#: A memory cannot be copied.
NEVER = 1000
#: Copying a register costs more than computing a variable early.
COPYING = 3


def reach(names, variables):
    """Return the variables that some signals are computed from, each after those it needs."""
    found, done = set(), []

    def visit(names):
        for name in sorted(names):
            if name in variables and name not in found:
                found.add(name)
                visit(variables[name].names)
                done.append(name)

    for some in names:
        visit(some)
    return done


@dataclass
class Group:
    """Registers that are assigned under the same conditions."""

    conditions: tuple
    clauses: list  # for every condition, those of the registers
    inner: list  # for every condition, variables that are computed under it only
    reads: set = field(default_factory=set)
    writes: set = field(default_factory=set)
    shown: set = field(default_factory=set)  # registers that other modules see
    old: set = field(default_factory=set)  # registers that it must read from a copy


@dataclass
class Copy:
    """A register whose value before the edge is needed after it was assigned."""

    name: str
    register: str


class Schedule:
    """The steps of a process.

    What is read by other modules (``visible``) is assigned when all is computed, by the simulator:
    in a variable of its own, unless everything that reads it comes first. Everything else is
    assigned at once. So what reads a register comes first, or reads a copy. A variable is computed
    where it is first needed, or under the only condition under which it is needed.

    Parameters
    ----------
    logic : Logic
        Of the module; gets the signals of copies.
    visible : set of str
        Registers, memories and ports; gets memories for which there is no other way.

    Attributes
    ----------
    resets : dict of Condition to list of Clause
        What resets do.
    steps : list of Group, Copy or str
        A string is the name of a variable to compute.
    copies : dict of str to str
        Name of the copy of a register.
    """

    def __init__(self, logic, visible):
        self.logic, self.visible = logic, visible
        self.variables = logic.variables
        self.resets, updates = find_resets(logic.registers)
        self.steps, self.copies = [], {}
        groups = make_groups(updates)
        self._place(groups)
        self._order(groups)

    def _place(self, groups):
        """Find the variables that are needed under one condition only."""
        users = {}  # of every variable: group and number of a condition, or None for anything else
        read = []

        def use(names, place):
            read.append(names)
            for name in names:
                users.setdefault(name, set()).add(place)

        for condition in [*self.resets, *(c for group in groups for c in group.conditions)]:
            use(condition.names, None)
        for group in groups:
            for number, clauses in enumerate(group.clauses):
                place = (id(group), number) if group.conditions != (ALWAYS,) else None
                for clause in clauses:
                    use(clause.read, place)
        inner = {(id(group), n): names for group in groups for n, names in enumerate(group.inner)}
        always = []
        for name in reversed(reach(read, self.variables)):
            found = users[name]
            place = next(iter(found)) if len(found) == 1 else None
            (always if place is None else inner[place]).append(name)
            for source in self.variables[name].names:
                users.setdefault(source, set()).add(place)
        for names in [always, *inner.values()]:
            names.reverse()
        self._late = dict.fromkeys(always)  # variables that are still to be computed
        self._readers = {}
        for name in always:
            for register in self.variables[name].names:
                self._readers.setdefault(register, set()).add(name)
        for group in groups:
            self._note(group)

    def _note(self, group):
        """Note what a group reads and writes."""
        for condition in group.conditions:
            group.reads |= condition.names
        for clauses, names in zip(group.clauses, group.inner, strict=True):
            for clause in clauses:
                group.writes.add(clause.target.name)
                group.reads |= clause.read
            for name in names:
                group.reads |= self.variables[name].names
        signals = self.logic.signals
        group.shown = {name for name in group.writes & self.visible if not signals[name].rows}
        group.writes -= self.visible

    def _order(self, groups):
        """Put groups into an order in which few need copies of registers.

        The cheapest goes next. Costs only fall; of a group they are looked at again when something
        they depend on is done, for there are thousands of groups.
        """
        needs = [set(reach([group.reads], self.variables)) for group in groups]
        concerned = self._concerned(groups, needs)
        readers = Counter(name for group in groups for name in group.reads)

        # What a group lacks is looked at in the end: what goes on with variables that are there
        # lets them end soon, so more of them stay in the processor's registers.
        def rate(number):
            lacks = needs[number] & self._late.keys()
            return self._cost(groups[number], readers), len(lacks), number

        queue = [rate(number) for number in range(len(groups))]
        heapify(queue)
        waiting = dict(enumerate(groups))
        while queue:
            number = heappop(queue)[-1]
            if number not in waiting:
                continue
            best, start = waiting.pop(number), len(self.steps)
            readers.subtract(best.reads - best.old)
            for name in sorted(best.reads):
                self._compute(name)
            for name in sorted(best.writes | best.shown):
                for variable in sorted(self._readers.get(name, ())):
                    self._compute(variable)
                if name in best.writes and readers[name]:
                    self._keep(name, waiting.values(), readers)
            done = best.reads.union(step for step in self.steps[start:] if isinstance(step, str))
            self.steps.append(best)
            for number in waiting.keys() & set().union(*(concerned.get(name, ()) for name in done)):
                heappush(queue, rate(number))

    def _concerned(self, groups, needs):
        """Return, for every variable and register, the groups whose cost it is part of."""
        concerned = {}
        for number, group in enumerate(groups):
            written = group.writes | group.shown
            early = (self._readers.get(name, ()) for name in written)
            for name in needs[number].union(written, *early):
                concerned.setdefault(name, set()).add(number)
        return concerned

    def _cost(self, group, readers):
        """Return what it costs if this group goes first."""
        names = group.writes | group.shown
        late = [name for name in names if readers[name] > (name in group.reads - group.old)]
        early = sum(len(self._readers.get(name, set()) & self._late.keys()) for name in names)
        return early + sum(NEVER if self.logic.signals[name].rows else COPYING for name in late)

    def _compute(self, name):
        """Compute a variable now, unless it has been."""
        if name in self._late:
            del self._late[name]
            for source in sorted(self.variables[name].names):
                self._compute(source)
            self.steps.append(name)

    def _keep(self, name, groups, readers):
        """Let ``groups`` read a copy of a register; assign a memory after everything else."""
        signals = self.logic.signals
        if signals[name].rows:
            self.visible.add(name)
            return
        if name not in self.copies:
            self.copies[name] = unused(f"{name}_old", signals)
            signals[self.copies[name]] = Signal(signals[name].width)
            self.steps.append(Copy(self.copies[name], name))
        for group in groups:
            if name in group.reads - group.old:
                group.old.add(name)
                readers[name] -= 1


def find_resets(registers):
    """Return what resets do, by condition, and the clauses of registers without them."""

    def constant(clause):
        value = clause.value
        return clause.condition.tests and value.kind == "bits" and not value.names

    first = [register.clauses[0] for register in registers if len(register.clauses) > 1]
    count = Counter(clause.condition for clause in first if constant(clause))
    resets, updates = {}, []
    for register in registers:
        clause = register.clauses[0]
        if constant(clause) and count[clause.condition] >= RESETS:
            resets.setdefault(clause.condition, []).append(clause)
            if register.clauses[1:]:
                updates.append(register.clauses[1:])
        else:
            updates.append(register.clauses)
    return resets, updates


def make_groups(updates):
    """Gather registers with the same conditions, memories apart."""
    groups = {}
    for clauses in updates:
        conditions = tuple(clause.condition for clause in clauses)
        target = clauses[0].target
        key = target if conditions == (ALWAYS,) else (conditions, bool(target.width))
        if key not in groups:
            groups[key] = Group(conditions, [[] for _ in clauses], [[] for _ in clauses])
        for found, clause in zip(groups[key].clauses, clauses, strict=True):
            found.append(clause)
    return list(groups.values())
