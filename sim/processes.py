# SPDX-License-Identifier: Apache-2.0
"""The Verilog of a bundle written anew for the simulator: one process per module.

Verilator keeps every signal of a netlist in memory, because what one `always` block or assignment
computes another one reads. Inside a single process most of them are variables that the compiler
never stores. So all but the regions is flattened, and every module gets one process: first
what is computed from the registers, then the registers, in an order in which most can
be assigned at once. What is needed under one condition only is computed under that condition.

Registers that other modules may read are assigned as always, all others as variables.
"""

from collections import Counter
from dataclasses import dataclass, field
import re

from .fields import cut_fields
from .netlist import (
    REFERENCE,
    Module,
    Register,
    Signal,
    UnknownVerilog,
    flatten,
    parse,
    references,
    replace,
    unused,
    width_of,
)

__all__ = ["one_process_each"]

#: A condition that gives so many registers a constant is a reset.
RESETS = 4
#: Bits of a memory that the processor's nearest cache does not hold.
LARGE = 8 << 15


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
    return "\n".join(print_module(module, modules) for module in flat)


def split(module):
    """Give every variable one driver: what several drive becomes several variables."""
    drivers, pieces = {}, {}
    assignments, registers = [], []

    def piece(target):
        """Return the variable that is the target of an assignment."""
        match = REFERENCE.fullmatch(target)
        if not match or match[1] not in module.signals:
            raise UnknownVerilog(target)
        name, width = match[1], module.signals[match[1]].width
        high = width - 1 if match[2] is None else int(match[2])
        low = 0 if match[2] is None else int(match[3] or match[2])
        if (high, low) == (width - 1, 0):
            variable = name
        else:
            variable = drivers.get((name, high, low)) or unused(
                f"{name}_{high}_{low}", module.signals
            )
            module.signals[variable] = Signal(
                high - low + 1, initial=part_of(module.signals[name].initial, high, low)
            )
        if variable != name and (name, high, low) not in drivers:
            pieces.setdefault(name, []).append((high, low, variable))
        drivers[name, high, low] = variable
        return variable

    for target, value in module.assignments:
        if not target.startswith("{"):
            assignments.append((piece(target), value))
            continue
        parts = target.strip("{ }").split(", ")
        widths = {name: signal.width for name, signal in module.signals.items()}
        sizes = [width_of(part, widths) for part in parts]
        joined = unused("joined", module.signals)
        high = sum(sizes)
        module.signals[joined] = Signal(high)
        assignments.append((joined, value))
        for part, size in zip(parts, sizes, strict=True):
            high -= size
            assignments.append((piece(part), f"{joined}[{high + size - 1}:{high}]"))
    for register in module.registers:
        clauses = []
        for condition, target, value in register.clauses:
            match = re.match(r"\w+", target)
            memory = module.signals[match[0]].rows
            clauses.append((condition, target if memory else piece(target), value))
        registers.append(Register(register.clock, clauses))
    for name, found in pieces.items():
        pieces[name] = complete(found, module.signals[name].width)
    return assignments, registers, pieces


def part_of(initial, high, low):
    """Return the initial value of some bits of a register."""
    if initial is None:
        return None
    base, digits = re.fullmatch(r"\d+'([hdb])(\w+)", initial).groups()
    value = int(digits, {"h": 16, "d": 10, "b": 2}[base])
    width = high - low + 1
    return f"{width}'h{value >> low & (1 << width) - 1:x}"


def complete(found, width):
    """Return the pieces of a signal from its highest bit down, with zeros where there are none."""
    pieces, following = [], width - 1
    for high, low, variable in sorted(found, reverse=True):
        if high > following:
            raise UnknownVerilog(variable)
        if high < following:
            pieces.append((following, high + 1, None))
        pieces.append((high, low, variable))
        following = low - 1
    if following >= 0:
        pieces.append((following, 0, None))
    return pieces


def reader(pieces, signals, assignments):
    """Return a function that rewrites an expression in terms of pieces."""
    wholes = {}

    def gather(name, high, low):
        parts = []
        for top, bottom, variable in pieces[name]:
            first, last = min(high, top), max(low, bottom)
            if first < last:
                continue
            size = first - last + 1
            if variable is None:
                parts.append(f"{size}'h0")
            elif (first, last) == (top, bottom):
                parts.append(variable)
            else:
                parts.append(f"{variable}[{first - bottom}:{last - bottom}]")
        return parts[0] if len(parts) == 1 else f"{{ {', '.join(parts)} }}"

    def substitute(match):
        name, high, low = match[1], match[2], match[3] or match[2]
        if name not in pieces:
            return match[0]
        if high is not None:
            return gather(name, int(high), int(low))
        whole = gather(name, signals[name].width - 1, 0)
        if match.string[match.end() : match.end() + 1] != "[":
            return whole
        if name not in wholes:
            wholes[name] = unused(f"{name}_whole", signals)
            signals[wholes[name]] = Signal(signals[name].width)
            assignments.append((wholes[name], whole))
        return wholes[name]

    return lambda text: text and REFERENCE.sub(substitute, text)


def drop_aliases(module):
    """Replace wires that are other names of signals; return what replaces them."""
    aliases = {}

    def root(name):
        while name in aliases:
            name = aliases[name]
        return name

    kept = []
    for target, value in module.assignments:
        signal, source = module.signals.get(target), module.signals.get(value)
        if signal and source and not signal.direction and signal.width == source.width:
            aliases[target] = value
        else:
            kept.append((target, value))
    names = {name: root(name) for name in aliases}
    module.assignments = [(target, replace(value, names)) for target, value in kept]
    for register in module.registers:
        register.clock = names.get(register.clock, register.clock)
        register.clauses = [
            (condition and replace(condition, names), replace(target, names), replace(value, names))
            for condition, target, value in register.clauses
        ]
    module.instances = [
        (kind, name, {port: replace(value, names) for port, value in connections.items()})
        for kind, name, connections in module.instances
    ]


@dataclass
class Group:
    """Registers that are assigned under the same conditions."""

    conditions: tuple
    clauses: list  # for every condition, of pairs of target and value
    inner: list  # for every condition, variables that are computed under it only
    reads: set = field(default_factory=set)
    writes: set = field(default_factory=set)
    old: set = field(default_factory=set)  # registers that it must read from a copy


def print_module(module, modules):
    """Return the text of a flat module with one process."""
    drop_aliases(module)
    outside = connect_instances(module, modules)
    assignments, registers, pieces = split(module)
    rewrite = reader(pieces, module.signals, assignments)
    logic = {}
    position = 0
    while position < len(assignments):  # which grows while values are rewritten
        target, value = assignments[position]
        logic[target] = rewrite(value)
        position += 1
    for register in registers:
        register.clauses = [
            (rewrite(condition), target if target in module.signals else rewrite(target), rewrite(value))
            for condition, target, value in register.clauses
        ]
    outputs = {}
    for name, signal in module.signals.items():
        if signal.direction == "output" and name not in {r.clauses[0][1] for r in registers}:
            outputs[name] = logic.pop(name) if name in logic else rewrite(name)
    inputs = {(place, port): rewrite(value) for place, port, value in outside}
    for target, value in assignments[position:]:
        logic[target] = value
    fields = cut_fields(module.signals, logic, registers, [*outputs.values(), *inputs.values()])
    added = []
    rewrite = reader(fields, module.signals, added)
    for texts in (logic, outputs, inputs):
        texts.update({name: rewrite(value) for name, value in texts.items()})
    logic.update({name: rewrite(value) for name, value in added})
    for register in registers:
        register.clauses = [
            (rewrite(condition), target if target in module.signals else rewrite(target), rewrite(value))
            for condition, target, value in register.clauses
        ]
    clocks = {register.clock for register in registers}
    if len(clocks) != 1:
        raise UnknownVerilog(f"clocks {clocks}")
    return Printer(module, modules, logic, registers, outputs, inputs, clocks.pop()).text()


def connect_instances(module, modules):
    """Give every output of an instance a wire of its own; return place, port, value of inputs."""
    inputs = []
    for number, (kind, place, connections) in enumerate(module.instances):
        wires = {}
        for port, value in connections.items():
            if modules[kind].signals[port].direction == "input":
                inputs.append((place, port, value))
                continue
            wire = unused(f"{place}_{port}", module.signals)
            module.signals[wire] = Signal(modules[kind].signals[port].width)
            module.assignments.append((value, wire))
            wires[port] = wire
        module.instances[number] = (kind, place, wires)
    return inputs


class Printer:
    """Prints a module.

    Parameters
    ----------
    module : Module
    modules : dict
        All modules by name.
    logic : dict of str to str
        Expressions of variables.
    registers : list of Register
    outputs : dict of str to str
        Expressions of those outputs that are no registers.
    inputs : dict of (str, str) to str
        Expressions of the inputs of instances, by place and port.
    clock : str
    """

    def __init__(self, module, modules, logic, registers, outputs, inputs, clock):
        self.module, self.signals = module, module.signals
        self.logic, self.registers = logic, registers
        self.outputs, self.inputs, self.clock = outputs, inputs, clock
        self.instances = module.instances

    def text(self):
        """Return the text of the module."""
        self.cone = self.reach([*self.outputs.values(), *self.inputs.values()])
        visible = set()
        for text in [*self.outputs.values(), *self.inputs.values(), *map(self.logic.get, self.cone)]:
            visible |= references(text)
        visible |= {name for name, signal in self.signals.items() if signal.direction}
        self.visible = visible
        resets, updates = self.find_resets()
        groups = self.make_groups(updates)
        self.sink(groups)
        self.order(groups)
        return self.print(resets)

    def reach(self, texts):
        """Return the variables that expressions are computed from, each after those it needs."""
        found = {}

        def visit(text):
            for name in sorted(references(text)):
                if name in self.logic and name not in found:
                    found[name] = None
                    visit(self.logic[name])
                    done.append(name)

        done = []
        for text in texts:
            visit(text)
        return done

    def find_resets(self):
        """Return what resets do, by condition, and registers without them."""
        count = Counter(
            r.clauses[0][0]
            for r in self.registers
            if len(r.clauses) > 1 and re.fullmatch(r"\d+'\w+", r.clauses[0][2])
        )
        resets, updates = {}, []
        for register in self.registers:
            condition, target, value = register.clauses[0]
            if condition and count[condition] >= RESETS and re.fullmatch(r"\d+'\w+", value):
                resets.setdefault(condition, []).append((target, value))
                if register.clauses[1:]:
                    updates.append(register.clauses[1:])
            else:
                updates.append(register.clauses)
        return resets, updates

    def make_groups(self, updates):
        """Gather registers with the same conditions."""
        groups = {}
        for clauses in updates:
            conditions = tuple(clause[0] for clause in clauses)
            if conditions == (None,):
                group = groups[clauses[0][1]] = Group(conditions, [[]], [[]])
            else:
                key = (conditions, self.name_of(clauses[0][1]) != clauses[0][1])
                group = groups.setdefault(
                    key, Group(conditions, [[] for _ in conditions], [[] for _ in conditions])
                )
            for part, (_, target, value) in zip(group.clauses, clauses, strict=True):
                part.append((target, value))
        return list(groups.values())

    @staticmethod
    def name_of(target):
        """Return the name of a register or memory that is assigned."""
        return re.match(r"\w+", target)[0]

    def sink(self, groups):
        """Find the variables that are needed under one condition only."""
        users = {}  # of every variable: conditions, or None for anything else
        for group in groups:
            for condition in group.conditions:
                self.use(users, condition, None)
            for number, part in enumerate(group.clauses):
                place = (id(group), number) if group.conditions[number] else None
                for target, value in part:
                    self.use(users, value, place)
                    self.use(users, target[len(self.name_of(target)) :], place)
        self.always = []
        needed = self.reach(
            [text for group in groups for part in group.clauses for pair in part for text in pair]
            + [c for group in groups for c in group.conditions if c]
            + list(self.find_resets()[0])
        )
        for condition in self.find_resets()[0]:
            self.use(users, condition, None)
        places = {(id(group), n): group.inner[n] for group in groups for n in range(len(group.inner))}
        for name in reversed(needed):
            found = users.get(name, set())
            place = next(iter(found)) if len(found) == 1 else None
            (places[place] if place else self.always).insert(0, name)
            self.use(users, self.logic[name], place)
        for group in groups:
            for number, part in enumerate(group.clauses):
                for target, value in part:
                    group.writes.add(self.name_of(target))
                    group.reads |= references(value)
                    group.reads |= references(target[len(self.name_of(target)) :])
                for name in group.inner[number]:
                    group.reads |= references(self.logic[name])
            for condition in group.conditions:
                group.reads |= references(condition or "")

    @staticmethod
    def use(users, text, place):
        """Note that an expression is needed at ``place``."""
        for name in references(text or ""):
            users.setdefault(name, set()).add(place)

    def order(self, groups):
        """Put groups into an order in which few need copies of registers.

        Sets `ordered`: groups, and the names of variables to compute between them.
        """
        self.copies, self.ordered = {}, []
        for group in groups:
            group.writes -= self.visible
        waiting = list(groups)
        late = dict.fromkeys(self.always)  # variables that are still to be computed
        self.readers = {}
        for name in self.always:
            for register in references(self.logic[name]):
                self.readers.setdefault(register, set()).add(name)

        def compute(name):
            if name in late:
                del late[name]
                for source in sorted(references(self.logic[name])):
                    compute(source)
                self.ordered.append(name)

        self.late = late
        while waiting:
            readers = Counter(name for group in waiting for name in group.reads - group.old)
            best = min(waiting, key=lambda group: self.cost(group, readers))
            waiting.remove(best)
            for name in sorted(best.reads):
                compute(name)
            for name in sorted(best.writes):
                for variable in sorted(self.readers.get(name, ())):
                    compute(variable)
                if readers[name] > (name in best.reads - best.old):
                    self.keep(name, waiting)
            self.ordered.append(best)

    def cost(self, group, readers):
        """Return how many registers must be copied if this group goes first."""
        late = [n for n in group.writes if readers[n] > (n in group.reads - group.old)]
        early = sum(len(self.readers.get(n, set()) & self.late.keys()) for n in group.writes)
        return sum(1000 if self.signals[name].rows else 3 for name in late) + early

    def keep(self, name, groups):
        """Let ``groups`` read a copy of a register, or its old value by its late assignment."""
        if self.signals[name].rows:
            self.visible.add(name)
            return
        if name not in self.copies:
            self.copies[name] = unused(f"{name}_old", self.signals)
            self.ordered.append((self.copies[name], name))
        self.signals.setdefault(self.copies[name], Signal(self.signals[name].width))
        for group in groups:
            if name in group.reads:
                group.old.add(name)

    def print(self, resets):
        """Return the text."""
        lines = [f"module {self.module.name}({', '.join(self.module.ports)});"]
        process, body = [], []
        holds = {}
        for number, condition in enumerate(resets):
            holds[condition] = unused(f"reset_{number}", self.signals)
            self.signals[holds[condition]] = Signal(1)
        for condition, name in holds.items():
            for variable in self.reach([condition]):
                if variable in self.ordered:
                    self.ordered.remove(variable)
                process.append(f"{self.local(variable)} = {self.inside(self.logic[variable])};")
            process.append(f"{name} = {self.inside(condition)};")
        for item in self.ordered:
            if isinstance(item, Group):
                body += self.print_group(item)
            elif isinstance(item, tuple):
                body.append(f"{item[0]} = {item[1]};")
            else:
                body.append(f"{self.local(item)} = {self.inside(self.logic[item])};")
        for condition, assignments in resets.items():
            body.append(f"if ({holds[condition]}) begin")
            body += [f"  {self.assign(target, value, {})}" for target, value in assignments]
            body.append("end")
        body += self.prefetches()
        lines += self.declarations()
        for name in self.cone:
            lines.append(f"  assign {self.outer(name)} = {self.outside(self.logic[name])};")
        for name, value in self.outputs.items():
            lines.append(f"  assign {name} = {self.outside(value)};")
        for kind, place, wires in self.instances:
            ports = dict(wires)
            for (where, port), value in self.inputs.items():
                if where == place:
                    ports[port] = self.outside(value)
            connections = ", ".join(f".{port}({value})" for port, value in ports.items())
            lines.append(f"  {kind} {place} ({connections});")
        lines.append(f"  always @(posedge {self.clock}) begin")
        lines += [f"    {line}" for line in [*process, *body]]
        return "\n".join([*lines, "  end", "endmodule", ""])

    def prefetches(self):
        """Return statements that fetch what large memories will be read for after the next edge."""
        registers = {self.name_of(register.clauses[0][1]) for register in self.registers}
        lines = []
        for register in self.registers:
            for _, _, value in register.clauses:
                match = re.fullmatch(r"(\w+)\[(.+)\]", value)
                signal = match and self.signals.get(match[1])
                if not signal or not signal.rows or signal.rows * signal.width < LARGE:
                    continue
                address = self.resolve(match[2])
                if self.name_of(address) in registers and REFERENCE.fullmatch(address):
                    lines.append(f'$c("VL_PREFETCH_RD(&(", {match[1]}[{address}], "));");')
        return lines

    def resolve(self, text):
        """Follow the bits of a variable to the register that they come from."""
        while (match := REFERENCE.fullmatch(text)) and match[1] in self.logic:
            source = REFERENCE.fullmatch(self.logic[match[1]])
            if not source:
                break
            low = int(source[3] or source[2] or 0)
            width = self.signals[match[1]].width
            high = int(match[2]) if match[2] else width - 1
            least = int(match[3] or match[2] or 0)
            text = f"{source[1]}[{low + high}:{low + least}]"
        return text

    def print_group(self, group):
        """Return the lines of a group."""
        lines = []
        names = {name: self.copies[name] for name in group.old}
        for number, condition in enumerate(group.conditions):
            inner = [
                f"{self.local(name)} = {replace(self.inside(self.logic[name]), names)};"
                for name in group.inner[number]
            ]
            inner += self.in_order(group.clauses[number], names)
            if condition is None and number == 0:
                lines += inner
                continue
            condition = condition and replace(self.inside(condition), names)
            lines.append(("else " if number else "") + (f"if ({condition}) begin" if condition else "begin"))
            lines += [f"  {line}" for line in inner]
            lines.append("end")
        return lines

    def in_order(self, pairs, names):
        """Return assignments of one group in an order, or with copies, that reads old values."""
        waiting, lines, first = list(pairs), [], []
        while waiting:
            def late(pair):
                name = self.name_of(pair[0])
                return name not in self.visible and any(
                    name in references(value) | references(target[len(self.name_of(target)):])
                    for target, value in waiting if (target, value) != pair
                )
            best = next((pair for pair in waiting if not late(pair)), None)
            if best is None:
                name = self.name_of(waiting[0][0])
                copy = unused(f"{name}_before", self.signals)
                self.signals[copy] = Signal(self.signals[name].width)
                first.append(f"{copy} = {names.get(name, name)};")
                waiting = [(target, replace(value, {name: copy})) for target, value in waiting]
                continue
            waiting.remove(best)
            lines.append(self.assign(*best, names))
        return first + lines

    def assign(self, target, value, names):
        """Return the assignment of a register."""
        name = self.name_of(target)
        sign = "<=" if name in self.visible else "="
        place = replace(self.inside(target[len(name) :]), names)
        return f"{name}{place} {sign} {replace(self.inside(value), names)};"

    def local(self, name):
        """Return the name of a variable inside the process."""
        return f"{name}_local" if name in self.outputs else name

    def outer(self, name):
        """Return the name of a wire outside of the process."""
        return f"{name}_outside"

    def inside(self, text):
        """Return an expression as the process has it."""
        return text

    def outside(self, text):
        """Return an expression as assignments have it."""
        return replace(text, {name: self.outer(name) for name in self.cone})

    def declarations(self):
        """Return the declarations of all signals."""
        registers = {self.name_of(r.clauses[0][1]) for r in self.registers}
        wires = {wire for _, _, wires in self.instances for wire in wires.values()}
        local = {*self.always, *self.copies.values()}
        lines = []
        for name, signal in self.signals.items():
            size = f"[{signal.width - 1}:0] " if signal.width > 1 else ""
            if signal.direction:
                kind = f"{signal.direction} {'reg' if name in registers else 'wire'}"
            elif signal.rows:
                lines.append(f"  reg {size}{name} [{signal.rows - 1}:0];")
                continue
            else:
                kind = "wire" if name in wires else "reg"
            initial = f" = {signal.initial}" if name in registers and signal.initial else ""
            lines.append(f"  {kind} {size}{name}{initial};")
        for name in self.cone:
            width = self.signals[name].width
            lines.append(f"  wire [{width - 1}:0] {self.outer(name)};")
        return lines
