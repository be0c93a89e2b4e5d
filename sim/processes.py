# SPDX-License-Identifier: Apache-2.0
"""The Verilog of a bundle written anew for the simulator: one process per module.

Verilator keeps the signals of a netlist in memory, because what one `always` block or assignment
computes another one reads. Inside of a single process most of them are variables that the compiler
never stores. So all but the regions is flattened, and every module gets one process: the steps of
a :class:`sim.schedule.Schedule`.
"""

import re

from .drivers import single_drivers
from .netlist import REFERENCE, Signal, flatten, parse, references, replace, unused
from .schedule import Copy, Group, Schedule, reach, stem
from .unread import drop_unread

__all__ = ["one_process_each"]

#: Bits of a memory that the processor's nearest caches do not hold.
LARGE = 1 << 18


def one_process_each(verilog, *, top, stay):
    """Return ``verilog`` with one process in each of its modules.

    Parameters
    ----------
    verilog : str
        As Yosys prints a netlist.
    top : str
        Name of the top module.
    stay : callable
        Says of the name of a module whether it remains one; all others become part of what they
        are in.

    Raises
    ------
    UnknownVerilog
        If the text is not of that kind.
    """
    modules = parse(verilog)
    kept = {name for name in modules if stay(name)}
    flat = [flatten(modules, name, kept) for name in [*sorted(kept), top]]
    return "\n".join(
        ModuleText(module, drop_unread(single_drivers(module, modules))).text() for module in flat
    )


class ModuleText:
    """Prints a module with one process.

    What other modules see (outputs, and inputs of instances) is computed by assignments outside
    of the process, from registers that are assigned as registers.

    Parameters
    ----------
    module : Module
        Flat.
    logic : Logic
        What it computes.
    """

    def __init__(self, module, logic):
        self.module, self.logic = module, logic
        self.signals, self.variables = logic.signals, logic.variables
        seen = [*logic.outputs.values(), *logic.inputs.values()]
        self.cone = reach(seen, self.variables)
        self.visible = {name for name, signal in self.signals.items() if signal.direction}
        for text in [*seen, *map(self.variables.get, self.cone)]:
            self.visible |= references(text)
        self.schedule = Schedule(logic, self.visible)
        self.states = {stem(register.clauses[0][1]) for register in logic.registers}

    def text(self):
        """Return the text."""
        process = self.process()  # which declares copies
        lines = [f"module {self.module.name}({', '.join(self.module.ports)});"]
        lines += [*self.declarations(), *self.outside()]
        lines += [f"  always @(posedge {self.logic.clock}) begin"]
        lines += [f"    {line}" for line in process]
        return "\n".join([*lines, "  end", "endmodule", ""])

    def declarations(self):
        """Return the declarations of all signals."""
        wires = {wire for _, _, wires in self.module.instances for wire in wires.values()}
        lines = []
        for name, signal in self.signals.items():
            kind = "wire" if name in wires else "reg"
            if signal.direction:
                kind = f"{signal.direction} {'reg' if name in self.states else 'wire'}"
            rows = f" [{signal.rows - 1}:0]" if signal.rows else ""
            known = name in self.states and signal.initial
            initial = f" = {signal.initial}" if known else ""
            lines.append(f"  {kind} {size(signal)}{name}{rows}{initial};")
        return lines

    def outside(self):
        """Return the assignments of what other modules see, and the instances."""
        names = {name: unused(f"{name}_outside", self.signals) for name in self.cone}
        lines = [f"  wire {size(self.signals[name])}{wire};" for name, wire in names.items()]
        for name, wire in names.items():
            lines.append(f"  assign {wire} = {replace(self.variables[name], names)};")
        for name, value in self.logic.outputs.items():
            lines.append(f"  assign {name} = {replace(value, names)};")
        for kind, place, wires in self.module.instances:
            ports = dict(wires)
            for (where, port), value in self.logic.inputs.items():
                if where == place:
                    ports[port] = replace(value, names)
            connections = ", ".join(f".{port}({value})" for port, value in ports.items())
            lines.append(f"  {kind} {place} ({connections});")
        return lines

    def process(self):
        """Return the lines of the process."""
        lines, resets = [], []
        first = reach(list(self.schedule.resets), self.variables)  # what resets depend on
        lines += [self.compute(variable, {}) for variable in first]
        for number, (condition, pairs) in enumerate(self.schedule.resets.items()):
            held = unused(f"reset_{number}", self.signals)  # the condition may be a register
            self.signals[held] = Signal(1)
            lines.append(f"{held} = {condition};")
            resets += [f"if ({held}) begin"]
            resets += [f"  {self.assign(target, value, {})}" for target, value in pairs]
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
        """Return the lines of a group."""
        lines = []
        names = {name: self.schedule.copies[name] for name in group.old}
        for number, condition in enumerate(group.conditions):
            inner = [self.compute(name, names) for name in group.inner[number]]
            inner += self.in_order(group.clauses[number], names)
            if group.conditions == (None,):
                return inner
            head = f"if ({replace(condition, names)}) " if condition else ""
            lines.append(f"{'else ' if number else ''}{head}begin")
            lines += [*(f"  {line}" for line in inner), "end"]
        return lines

    def in_order(self, pairs, names):
        """Return the assignments of a group, in order or with copies, that read old values."""
        waiting, lines, copies = list(pairs), [], []

        def early(pair):
            """Would another assignment read what this one has changed?"""
            name = stem(pair[0])
            return name not in self.visible and any(
                name in references(value) | references(target[len(stem(target)) :])
                for target, value in waiting
                if (target, value) != pair
            )

        while waiting:
            best = next((pair for pair in waiting if not early(pair)), None)
            if best is None:
                name = stem(waiting[0][0])
                copy = unused(f"{name}_before", self.signals)
                self.signals[copy] = Signal(self.signals[name].width)
                copies.append(f"{copy} = {names.get(name, name)};")
                waiting = [(target, replace(value, {name: copy})) for target, value in waiting]
                continue
            waiting.remove(best)
            lines.append(self.assign(*best, names))
        return copies + lines

    def compute(self, name, names):
        """Return the computation of a variable."""
        return f"{name} = {replace(self.variables[name], names)};"

    def assign(self, target, value, names):
        """Return the assignment of a register, or of a row of a memory."""
        name = stem(target)
        sign = "<=" if name in self.visible else "="
        return f"{name}{replace(target[len(name) :], names)} {sign} {replace(value, names)};"

    def prefetches(self):
        """Return statements that fetch what large memories will be read for after the next edge.

        A memory of a bundle is addressed by a register, so that is known a cycle before.
        """
        lines = []
        for register in self.logic.registers:
            for _, _, value in register.clauses:
                match = re.fullmatch(r"(\w+)\[(.+)\]", value)
                signal = match and self.signals.get(match[1])
                if not signal or (signal.rows or 0) * signal.width < LARGE:
                    continue
                address = self.origin(match[2])
                if REFERENCE.fullmatch(address) and stem(address) in self.states:
                    lines.append(f'$c("VL_PREFETCH_RD(&(", {match[1]}[{address}], "));");')
        return lines

    def origin(self, text):
        """Follow the bits of a variable to the register that they come from."""
        while (match := REFERENCE.fullmatch(text)) and match[1] in self.variables:
            source = REFERENCE.fullmatch(self.variables[match[1]])
            if not source:
                break
            shift = int(source[3] or source[2] or 0)
            high = int(match[2]) if match[2] else self.signals[match[1]].width - 1
            low = int(match[3] or match[2] or 0)
            text = f"{source[1]}[{shift + high}:{shift + low}]"
        return text


def size(signal):
    """Return the range in a declaration."""
    return f"[{signal.width - 1}:0] " if signal.width > 1 else ""
