# SPDX-License-Identifier: Apache-2.0
"""Order the computations and register assignments of one process."""

from collections import Counter
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from .groups import find_resets, make_groups
from .netlist import ALWAYS, Signal, unused

__all__ = ["Copy", "Schedule", "reach"]

#: Cost of copying a memory, which is impossible.
NEVER = 1000
#: Cost of copying a register, relative to computing a variable earlier than necessary.
COPYING = 3


def reach(names, variables):
    """Return the variables that the given signals depend on, each after its own dependencies."""
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
    """A register whose old value is still needed after the register was assigned."""

    name: str
    register: str


class Schedule:
    """The steps of a process, in order.

    Registers that other modules see are assigned with ``<=``. Verilator changes them after the
    process; it needs a second variable for that unless all readers come before the assignment. All
    other registers change at once. Therefore each reader of such a register comes before its
    assignment, or reads a copy of the old value. A variable is computed where it is first needed,
    or inside the only condition under which it is needed.

    Parameters
    ----------
    logic : Logic
        Logic of the module. The signals of copies are added to it.
    visible : set of str
        Ports, and signals that other modules see. Memories that a group reads after they are
        written are added, because a memory cannot be copied.

    Attributes
    ----------
    resets : dict of Condition to list of Clause
        Assignments of the resets.
    steps : list of Group, Copy or str
        Steps in order. A string is the name of a variable to compute.
    copies : dict of str to str
        Name of the copy of each copied register.
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
        """Find the variables that are needed under a single condition only."""
        users = {}  # per variable: (group, number of the condition); None for other users
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
        self._late = dict.fromkeys(always)  # variables that are not computed yet
        self._readers = {}
        for name in always:
            for register in self.variables[name].names:
                self._readers.setdefault(register, set()).add(name)
        for group in groups:
            self._note(group)

    def _note(self, group):
        """Record the signals that a group reads and writes."""
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
        """Order the groups so that few of them need copies of registers.

        The group with the lowest cost goes next. Costs only fall while groups are placed. As there
        are thousands of groups, the cost of a group is computed again only after a step that it
        depends on.
        """
        needs = [set(reach([group.reads], self.variables)) for group in groups]
        concerned = self._concerned(groups, needs)
        readers = Counter(name for group in groups for name in group.reads)

        # Among groups of equal cost, the one that needs the fewest new variables goes first. A
        # group that uses variables already computed ends their lifetimes early, so that more
        # variables stay in the processor's registers.
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
        """Return, for each variable and register, the groups whose cost depends on it."""
        concerned = {}
        for number, group in enumerate(groups):
            written = group.writes | group.shown
            early = (self._readers.get(name, ()) for name in written)
            for name in needs[number].union(written, *early):
                concerned.setdefault(name, set()).add(number)
        return concerned

    def _cost(self, group, readers):
        """Return the cost of placing a group next."""
        names = group.writes | group.shown
        late = [name for name in names if readers[name] > (name in group.reads - group.old)]
        early = sum(len(self._readers.get(name, set()) & self._late.keys()) for name in names)
        return early + sum(NEVER if self.logic.signals[name].rows else COPYING for name in late)

    def _compute(self, name):
        """Compute a variable now, unless it was computed before."""
        if name in self._late:
            del self._late[name]
            for source in sorted(self.variables[name].names):
                self._compute(source)
            self.steps.append(name)

    def _keep(self, name, groups, readers):
        """Let ``groups`` read a copy of a register; assign a memory after the process instead."""
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
