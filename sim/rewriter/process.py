# SPDX-License-Identifier: Apache-2.0
"""Order the statements of a module in one process, and print it as Verilog."""

from collections import Counter
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import groupby

from hdl.verilog.conversion import zeros

from .netlist import ALWAYS, OPERATORS, Bits, Signal, unused

__all__ = ["Copy", "Group", "ModuleText", "Printer", "Schedule"]


# Print bits, expressions and conditions as Verilog.


def size(width):
    """Return the bit range for the declaration of a signal; empty if it has a single bit."""
    return f"[{width - 1}:0] " if width > 1 else ""


class Printer:
    """Printer of bits, expressions and conditions of one module.

    Parameters
    ----------
    signals : dict of str to Signal
    """

    def __init__(self, signals):
        self.signals = signals

    def run(self, run):
        """Return the text of a run of bits."""
        if run.name is None:
            return f"{run.width}'h{run.low:x}"
        if run.width == self.signals[run.name].width:
            return run.name
        if run.width == 1:
            return f"{run.name}[{run.low}]"
        return f"{run.name}[{run.low + run.width - 1}:{run.low}]"

    def bits(self, bits):
        """Return the text of bits: a run, or a concatenation with a count for repeated runs."""
        if len(bits.runs) == 1:
            return self.run(bits.runs[0])
        parts = []
        for run, same in groupby(reversed(bits.runs)):
            count = len(list(same))
            parts.append(f"{{{count}{{{self.run(run)}}}}}" if count > 1 else self.run(run))
        return f"{{ {', '.join(parts)} }}"

    def condition(self, condition):
        """Return the text of a condition."""
        tests = [f"{'' if high else '!'}{self.bits(bits)}" for bits, high in condition.tests]
        return " && ".join(tests) or "1'h1"

    def expression(self, value):
        """Return the text of an expression for the right side of an assignment.

        Verilog takes the width of the computation from the signal on the left side. Yosys takes it
        from the output of the cell, which is the same signal.
        """
        operands = [self.bits(bits) for bits in value.operands]
        if value.kind == "bits":
            return operands[0]
        if value.kind == "row":
            return f"{value.memory}[{operands[0]}]"
        if value.kind == "choice":
            text, *pairs = operands
            for bit, chosen in zip(pairs[::2], pairs[1::2], strict=True):
                text = f"({bit} ? {chosen} : {text})"
            return text
        if value.signed:
            shift = "<<" in OPERATORS[value.kind] or ">>" in OPERATORS[value.kind]
            operands[:1] = [f"$signed({operands[0]})"]
            operands[1:] = [text if shift else f"$signed({text})" for text in operands[1:]]
        operator = OPERATORS[value.kind]
        return f"{operator} {operands[0]}" if len(operands) == 1 else f" {operator} ".join(operands)

    def target(self, target):
        """Return the text of a target for the left side of an assignment."""
        if not target.width:
            return target.name
        row = f"{target.name}[{self.bits(target.address)}]"
        if target.width == self.signals[target.name].width:
            return row
        return f"{row}[{target.low + target.width - 1}:{target.low}]"


# Group the registers of a process by the conditions under which they change.


#: Number of registers that a condition must set to constants to count as a reset.
RESETS = 4


@dataclass
class Group:
    """Registers that are assigned under the same conditions."""

    conditions: tuple
    clauses: list  # for each condition, the clauses of the registers
    inner: list  # for each condition, the variables that are computed only under it
    reads: set = field(default_factory=set)
    writes: set = field(default_factory=set)
    shown: set = field(default_factory=set)  # registers that other modules read
    old: set = field(default_factory=set)  # registers whose value the group must read from a copy


def find_resets(registers):
    """Return the reset clauses by condition, and the other clauses of each register."""

    def constant(clause):
        return clause.condition.tests and clause.value.kind == "bits" and not clause.read

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
    """Group registers that have the same conditions; memories form groups of their own."""
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


# Order the computations and register assignments of one process.


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
    module : Module
        The flat module. The signals of copies are added to it.
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

    def __init__(self, module, visible):
        self.module, self.visible = module, visible
        self.variables = module.variables
        self.resets, updates = find_resets(module.registers)
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
        signals = self.module.signals
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
        return early + sum(NEVER if self.module.signals[name].rows else COPYING for name in late)

    def _compute(self, name):
        """Compute a variable now, unless it was computed before."""
        if name in self._late:
            del self._late[name]
            for source in sorted(self.variables[name].names):
                self._compute(source)
            self.steps.append(name)

    def _keep(self, name, groups, readers):
        """Let ``groups`` read a copy of a register; assign a memory after the process instead."""
        signals = self.module.signals
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


# Print a module with one process as Verilog.


#: Size in bits from which a memory is taken not to fit in the processor's nearest caches.
LARGE = 1 << 18


class ModuleText:
    """Printer of a module with one process.

    The values that other modules read (outputs, and inputs of instances) are computed by
    assignments outside of the process, from registers that the process assigns with ``<=``.

    Parameters
    ----------
    module : Module
        The flat module, whose clock is known.
    """

    def __init__(self, module):
        self.module = module
        self.signals, self.variables = module.signals, module.variables
        self.print = Printer(self.signals)
        seen = [bits.names for bits in module.shows()]
        self.cone = reach(seen, self.variables)
        self.visible = set(module.ports).union(
            *seen, *(self.variables[name].names for name in self.cone)
        )
        self.states = {register.name for register in module.registers}
        self.schedule = Schedule(module, self.visible)

    def text(self):
        """Return the Verilog text of the module."""
        process = self.process()  # must come first: it declares copies
        lines = [f"module {self.module.name}({', '.join(self.module.ports)});"]
        lines += [*self.declarations(), *self.outside()]
        lines += [f"  always @(posedge {self.module.clock}) begin"]
        lines += [f"    {line}" for line in process]
        return "\n".join([*lines, "  end", "endmodule", ""])

    def whole(self, name):
        """Return all bits of a signal."""
        return Bits.whole(name, self.signals[name].width)

    def renamed(self, names):
        """Return a substitution that replaces the signals ``names`` by other signals."""
        return {name: self.whole(other) for name, other in names.items()}

    def new(self, name, width):
        """Declare a variable; return its name, which has a number appended if ``name`` is taken."""
        found = unused(name, self.signals)
        self.signals[found] = Signal(width)
        return found

    def declarations(self):
        """Return the declarations of all signals."""
        lines = []
        for name, direction in self.module.ports.items():
            shown = self.module.outputs.get(name)
            width = self.signals[name].width if shown is None else shown.width
            kind = "reg" if name in self.states else "wire"
            lines.append(f"  {direction} {kind} {size(width)}{name}{self.initial(name)};")
        wires = {name for instance in self.module.instances for name in instance.outputs.values()}
        for name, signal in self.signals.items():
            if name in self.module.ports:
                continue
            kind = "wire" if name in wires else "reg"
            if signal.rows is not None:
                rows = f" [{signal.rows - 1}:0]"
                lines.append(f"  {kind} {size(signal.width)}{name}{rows};")
                if signal.initial is not None:
                    lines += zeros(name, signal.rows, signal.width)
                continue
            lines.append(f"  {kind} {size(signal.width)}{name}{self.initial(name)};")
        return lines

    def initial(self, name):
        """Return the initial value of a register as the end of its declaration."""
        if name not in self.states or self.signals[name].initial is None:
            return ""
        return f" = {self.signals[name].width}'h{self.signals[name].initial:x}"

    def outside(self):
        """Return the instances, and the assignments of the values that other modules read."""
        lines = []
        copies = {name: self.new(f"{name}_outside", self.signals[name].width) for name in self.cone}
        names = self.renamed(copies)
        for name, wire in copies.items():
            value = self.print.expression(self.variables[name].substitute(names))
            lines.append(f"  wire {size(self.signals[name].width)}{wire};")
            lines.append(f"  assign {wire} = {value};")
        for name, bits in self.module.outputs.items():
            lines.append(f"  assign {name} = {self.print.bits(bits.substitute(names))};")
        for instance in self.module.instances:
            ports = dict(instance.outputs)
            for port, bits in instance.inputs.items():
                ports[port] = self.print.bits(bits.substitute(names))
            connections = ", ".join(f".{port}({value})" for port, value in ports.items())
            lines.append(f"  {instance.kind} {instance.place} ({connections});")
        return lines

    def process(self):
        """Return the lines of the process."""
        lines, resets = [], []
        conditions = [condition.names for condition in self.schedule.resets]
        first = reach(conditions, self.variables)  # variables that the reset conditions depend on
        lines += [self.compute(variable, {}) for variable in first]
        for number, (condition, clauses) in enumerate(self.schedule.resets.items()):
            held = self.new(f"reset_{number}", 1)  # the condition may be a register
            lines.append(f"{held} = {self.print.condition(condition)};")
            resets += [f"if ({held}) begin"]
            resets += [f"  {self.assign(clause, {})}" for clause in clauses]
            resets += ["end"]
        for step in self.schedule.steps:
            if step in first:
                continue
            if isinstance(step, Group):
                lines += self.group(step)
            elif isinstance(step, Copy):
                lines.append(f"{step.name} = {step.register};")
            else:
                lines.append(self.compute(step, {}))
        return [*lines, *resets, *self.prefetches()]

    def group(self, group):
        """Return the lines of a group of registers."""
        lines = []
        names = self.renamed({name: self.schedule.copies[name] for name in group.old})
        for number, condition in enumerate(group.conditions):
            inner = [self.compute(name, names) for name in group.inner[number]]
            inner += self.in_order(group.clauses[number], names)
            if not condition.tests and number == 0:
                return inner
            head = ""
            if condition.tests:
                head = f"if ({self.print.condition(condition.substitute(names))}) "
            lines.append(f"{'else ' if number else ''}{head}begin")
            lines += [*(f"  {line}" for line in inner), "end"]
        return lines

    def in_order(self, clauses, names):
        """Return the assignments of a group; all of them read the values before the clock edge.

        The assignments are ordered so that a register is read before it changes. Where no such
        order
        exists, a copy keeps the old value.
        """
        waiting, lines, copies = list(clauses), [], []

        def early(clause):
            """Return whether another waiting assignment would read what this one changes."""
            name = clause.target.name
            return name not in self.visible and any(
                name in other.read for other in waiting if other is not clause
            )

        while waiting:
            best = next((clause for clause in waiting if not early(clause)), None)
            if best is None:
                name = waiting[0].target.name
                copy = self.new(f"{name}_before", self.signals[name].width)
                old = names.get(name, self.whole(name))
                copies.append(f"{copy} = {self.print.bits(old)};")
                waiting = [clause.reading({name: self.whole(copy)}) for clause in waiting]
                continue
            waiting.remove(best)
            lines.append(self.assign(best, names))
        return copies + lines

    def compute(self, name, names):
        """Return the statement that computes a variable."""
        return f"{name} = {self.print.expression(self.variables[name].substitute(names))};"

    def assign(self, clause, names):
        """Return the statement that assigns a register or a row of a memory."""
        clause = clause.reading(names)
        sign = "<=" if clause.target.name in self.visible else "="
        value = self.print.expression(clause.value)
        return f"{self.print.target(clause.target)} {sign} {value};"

    def prefetches(self):
        """Return statements that prefetch the rows of large memories that the next edge will read.

        The address comes from registers, so it is known a cycle before the read. If the number of
        rows is not a power of two, Verilator reads a choice between the row and zero, which has no
        address in memory. Such memories are not prefetched.
        """
        lines = []
        for register in self.module.registers:
            for clause in register.clauses:
                row = clause.value
                if row.kind != "row" or not row.names - {row.memory} <= self.states:
                    continue
                signal = self.signals[row.memory]
                if signal.rows * signal.width >= LARGE and signal.rows & signal.rows - 1 == 0:
                    text = self.print.expression(row)
                    lines.append(f'$c("VL_PREFETCH_RD(&(", {text}, "));");')
        return lines
