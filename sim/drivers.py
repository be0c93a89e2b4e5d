# SPDX-License-Identifier: Apache-2.0
"""A flat netlist in which every variable has one driver."""

from dataclasses import dataclass
import re

from .fields import cut_fields
from .netlist import REFERENCE, Register, Signal, UnknownVerilog, replace, unused, width_of

__all__ = ["Logic", "single_drivers"]


@dataclass
class Logic:
    """What a module computes.

    Parameters
    ----------
    signals : dict of str to Signal
    variables : dict of str to str
        Expressions of everything that is neither register nor output.
    registers : list of Register
    outputs : dict of str to str
        Expressions of those outputs that are no registers.
    inputs : dict of (str, str) to str
        Expressions of the inputs of instances, by the name of the instance and the port.
    clock : str
    """

    signals: dict
    variables: dict
    registers: list
    outputs: dict
    inputs: dict
    clock: str

    def rewrite(self, pieces):
        """Read from its pieces whatever has some."""
        added = []
        read = reader(pieces, self.signals, added)
        for texts in (self.variables, self.outputs, self.inputs):
            texts.update({name: read(value) for name, value in texts.items()})
        self.variables.update((name, read(value)) for name, value in added)
        for register in self.registers:
            register.clauses = [
                (read(condition), target if target in self.signals else read(target), read(value))
                for condition, target, value in register.clauses
            ]


def single_drivers(module, modules):
    """Return the logic of a flat module; its instances keep the wires at their outputs only."""
    drop_aliases(module)
    ports = connect_instances(module, modules)
    variables, registers, pieces = split(module)
    clocks = {register.clock for register in registers}
    if len(clocks) != 1:
        raise UnknownVerilog(f"clocks {clocks}")
    states = {register.clauses[0][1] for register in registers}
    outputs = {
        name: variables.pop(name, name if name in pieces else f"{signal.width}'h0")
        for name, signal in module.signals.items()
        if signal.direction == "output" and name not in states
    }
    logic = Logic(module.signals, variables, registers, outputs, ports, clocks.pop())
    logic.rewrite(pieces)
    uses = [*outputs.values(), *ports.values()]
    logic.rewrite(cut_fields(module.signals, variables, registers, uses))
    return logic


def drop_aliases(module):
    """Replace wires that are other names of signals."""
    aliases, kept = {}, []
    for target, value in module.assignments:
        signal, source = module.signals.get(target), module.signals.get(value)
        if signal and source and not signal.direction and signal.width == source.width:
            aliases[target] = value
        else:
            kept.append((target, value))

    def original(name):
        while name in aliases:
            name = aliases[name]
        return name

    names = {name: original(name) for name in aliases}
    module.assignments = [(target, replace(value, names)) for target, value in kept]
    for register in module.registers:
        register.clock = names.get(register.clock, register.clock)
        register.clauses = [
            tuple(part and replace(part, names) for part in clause) for clause in register.clauses
        ]
    module.instances = [
        (kind, name, {port: replace(value, names) for port, value in connections.items()})
        for kind, name, connections in module.instances
    ]


def connect_instances(module, modules):
    """Give every output of an instance a wire of its own; return what the inputs get."""
    inputs = {}
    for number, (kind, place, connections) in enumerate(module.instances):
        wires = {}
        for port, value in connections.items():
            if modules[kind].signals[port].direction == "input":
                inputs[place, port] = value
                continue
            wires[port] = unused(f"{place}_{port}", module.signals)
            module.signals[wires[port]] = Signal(modules[kind].signals[port].width)
            module.assignments.append((value, wires[port]))
        module.instances[number] = (kind, place, wires)
    return inputs


def split(module):
    """Return variables, registers and the pieces of those signals that have several drivers."""
    targets = Targets(module.signals)
    variables, registers = {}, []
    for target, value in module.assignments:
        if not target.startswith("{"):
            variables[targets.variable(target)] = value
            continue
        parts = target.strip("{ }").split(", ")
        widths = {name: signal.width for name, signal in module.signals.items()}
        sizes = [width_of(part, widths) for part in parts]
        joined, high = unused("joined", module.signals), sum(sizes)
        module.signals[joined] = Signal(high)
        variables[joined] = value
        for part, size in zip(parts, sizes, strict=True):
            high -= size
            variables[targets.variable(part)] = f"{joined}[{high + size - 1}:{high}]"
    for register in module.registers:
        clauses = []
        for condition, target, value in register.clauses:
            memory = module.signals[re.match(r"\w+", target)[0]].rows
            clauses.append((condition, target if memory else targets.variable(target), value))
        registers.append(Register(register.clock, clauses))
    pieces = {
        name: complete(found, module.signals[name].width) for name, found in targets.pieces.items()
    }
    return variables, registers, pieces


class Targets:
    """The variables that are assigned: signals, or pieces of them.

    Parameters
    ----------
    signals : dict of str to Signal
        Gets those of the pieces.
    """

    def __init__(self, signals):
        self.signals = signals
        self.pieces = {}
        self._known = {}

    def variable(self, target):
        """Return the variable for what stands on the left of an assignment."""
        match = REFERENCE.fullmatch(target)
        if not match or match[1] not in self.signals:
            raise UnknownVerilog(target)
        name = match[1]
        width = self.signals[name].width
        high = width - 1 if match[2] is None else int(match[2])
        low = 0 if match[2] is None else int(match[3] or match[2])
        if (high, low) == (width - 1, 0):
            return name
        if (name, high, low) not in self._known:
            piece = unused(f"{name}_{high}_{low}", self.signals)
            initial = part_of(self.signals[name].initial, high, low)
            self.signals[piece] = Signal(high - low + 1, initial=initial)
            self._known[name, high, low] = piece
            self.pieces.setdefault(name, []).append((high, low, piece))
        return self._known[name, high, low]


def part_of(initial, high, low):
    """Return the initial value of some bits of a register."""
    if initial is None:
        return None
    base, digits = re.fullmatch(r"\d+'([hdb])(\w+)", initial).groups()
    value = int(digits, {"h": 16, "d": 10, "b": 2}[base])
    width = high - low + 1
    return f"{width}'h{value >> low & (1 << width) - 1:x}"


def complete(found, width):
    """Return the pieces of a signal from its highest bit down, without a name where none is."""
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


def reader(pieces, signals, added):
    """Return a function that rewrites an expression in terms of pieces.

    Where a bit is chosen by its number, the signal is put together: in a variable, which is
    ``added``.
    """
    wholes = {}

    def gather(name, high, low):
        parts = []
        for top, bottom, variable in pieces[name]:
            first, last = min(high, top), max(low, bottom)
            if first < last:
                continue
            if variable is None:
                parts.append(f"{first - last + 1}'h0")
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
            added.append((wholes[name], whole))
        return wholes[name]

    return lambda text: text and REFERENCE.sub(substitute, text)
