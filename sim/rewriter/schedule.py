# SPDX-License-Identifier: Apache-2.0
"""The order in which one process computes variables and assigns registers."""

from collections import Counter
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from .groups import find_resets, make_groups
from .netlist import ALWAYS, Signal, unused

__all__ = ["Copy", "Schedule", "reach"]

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
class Copy:
    """A register whose value before the edge is needed after it was assigned."""

    name: str
    register: str


class Schedule:
    """The steps of a process.

    Registers that other modules see are assigned with ``<=``: Verilator changes them after the
    process, by way of a second variable unless all their readers come before the assignment. All
    other registers change at once, so each of their readers comes before, or reads a copy of the
    old value. A variable is computed where it is first needed, or under the only condition under
    which it is needed.

    Parameters
    ----------
    logic : Logic
        Of the module; gets the signals of copies.
    visible : set of str
        What other modules see, and all ports. Gets the memories that some group reads after they
        are written: a memory cannot be copied.

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

        for condition in [
            *self.resets,
            *(c for group in groups for c in group.conditions),
        ]:
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
