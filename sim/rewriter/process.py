# SPDX-License-Identifier: Apache-2.0
"""Print a module with one process as Verilog."""

from hdl.verilog.conversion import zeros

from .bits import Bits
from .groups import Group
from .netlist import Signal, unused
from .schedule import Copy, Schedule, reach
from .text import Printer, size

__all__ = ["ModuleText"]

#: Size in bits from which a memory is taken not to fit in the processor's nearest caches.
LARGE = 1 << 18


class ModuleText:
    """Printer of a module with one process.

    The values that other modules read (outputs, and inputs of instances) are computed by
    assignments outside of the process, from registers that the process assigns with ``<=``.

    Parameters
    ----------
    module : Module
        The flat module.
    logic : Logic
        Logic of the module.
    """

    def __init__(self, module, logic):
        self.module, self.logic = module, logic
        self.signals, self.variables = logic.signals, logic.variables
        self.print = Printer(self.signals)
        seen = [bits.names for bits in [*logic.outputs.values(), *logic.inputs.values()]]
        self.cone = reach(seen, self.variables)
        self.visible = set(logic.ports).union(
            *seen, *(self.variables[name].names for name in self.cone)
        )
        self.states = {register.name for register in logic.registers}
        self.schedule = Schedule(logic, self.visible)

    def text(self):
        """Return the Verilog text of the module."""
        process = self.process()  # must come first: it declares copies
        lines = [f"module {self.module.name}({', '.join(self.module.ports)});"]
        lines += [*self.declarations(), *self.outside()]
        lines += [f"  always @(posedge {self.logic.clock}) begin"]
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
        for name, direction in self.logic.ports.items():
            shown = self.logic.outputs.get(name)
            width = self.signals[name].width if shown is None else shown.width
            kind = "reg" if name in self.states else "wire"
            lines.append(f"  {direction} {kind} {size(width)}{name}{self.initial(name)};")
        wires = {name for instance in self.module.instances for name in instance.outputs.values()}
        for name, signal in self.signals.items():
            if name in self.logic.ports:
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
        for name, bits in self.logic.outputs.items():
            lines.append(f"  assign {name} = {self.print.bits(bits.substitute(names))};")
        for instance in self.module.instances:
            ports = dict(instance.outputs)
            for port in instance.inputs:
                bits = self.logic.inputs[instance.place, port]
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
        for register in self.logic.registers:
            for clause in register.clauses:
                row = clause.value
                if row.kind != "row" or not row.names - {row.memory} <= self.states:
                    continue
                signal = self.signals[row.memory]
                if signal.rows * signal.width >= LARGE and signal.rows & signal.rows - 1 == 0:
                    text = self.print.expression(row)
                    lines.append(f'$c("VL_PREFETCH_RD(&(", {text}, "));");')
        return lines
