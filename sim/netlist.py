# SPDX-License-Identifier: Apache-2.0
"""The Verilog of a bundle as data: modules with assignments and registers, flattened.

This reads what Yosys prints of a netlist, not Verilog at large: every assignment is the output of
one cell, every `always` block has one register or one memory port. Expressions stay text.
"""

from dataclasses import dataclass, field
import re

__all__ = ["Module", "Register", "Signal", "UnknownVerilog", "flatten", "parse", "references"]

MODULE = re.compile(r"^module (\w+)\s?\((.*?)\);\n(.*?)^endmodule", re.MULTILINE | re.DOTALL)
ESCAPED = re.compile(r"\\(\S+) ")
RANGE = r"(?:\[(\d+):0\] )?"
DECLARATION = re.compile(rf"(input|output|wire|reg) {RANGE}(\w+)(?: *= (\S+))?")
MEMORY = re.compile(rf"reg {RANGE}(\w+) +\[(\d+):0\]")
ASSIGNMENT = re.compile(r"assign (.+?) = (.+)", re.DOTALL)
INSTANCE = re.compile(r"(\w+) (\w+) \((.*)\)", re.DOTALL)
CONNECTION = re.compile(r"\.(\w+)\((.*?)\)(?:,|$)")
CLOCKED = re.compile(r"always @\(posedge (\w+)\)\s+(.*)", re.DOTALL)
CLAUSE = re.compile(r"\s*(?:(else )?(?:if \((!?\S+)\)\s+)?|else )([^;]+?) <= ([^;]+);")
#: Ports of one memory that share a block.
BLOCK = re.compile(r"(always @\(posedge \w+\)) begin\n(.*?)^  end\n", re.MULTILINE | re.DOTALL)
INNER_BLOCK = re.compile(r"( *if \(\S+\) )begin\n(.*?) *end\n", re.DOTALL)
#: A register with a reset that its enable gates.
NESTED = re.compile(r"    if \((\S+)\)\n      if \((\S+)\) ([^;]+;\n)      else ([^;]+;\n)")
FUNCTION = re.compile(r"function \[(\d+):0\] (\w+);.*?endfunction\n", re.DOTALL)
#: A name, with the bits that are meant if they are constant.
REFERENCE = re.compile(r"(?<![\w'$])([A-Za-z_]\w*)(?:\[(\d+)(?::(\d+))?\])?")


class UnknownVerilog(Exception):
    """The text is not what Yosys prints of a netlist; it can be compiled all the same."""


@dataclass
class Signal:
    """A wire or register of so many bits; a memory has rows of so many bits."""

    width: int
    direction: str | None = None
    initial: str | None = None
    rows: int | None = None


@dataclass
class Register:
    """What a clock edge does: for each clause, under its condition and none before, assign."""

    clock: str
    clauses: list  # of (condition or None, target, value)


@dataclass
class Module:
    """A module; instances are lists of kind, name and connections by port."""

    name: str
    ports: list
    signals: dict = field(default_factory=dict)
    assignments: list = field(default_factory=list)  # of (target, value)
    registers: list = field(default_factory=list)
    instances: list = field(default_factory=list)


def references(text):
    """Return the names in an expression."""
    return {match[1] for match in REFERENCE.finditer(text)}


def replace(text, names):
    """Return an expression with other ``names``."""
    return REFERENCE.sub(lambda m: names.get(m[1], m[1]) + m[0][len(m[1]) :], text)


def parse(verilog):
    """Return all modules of a text by name.

    Raises
    ------
    UnknownVerilog
        If there is anything else in the text than what is known here.
    """
    verilog = ESCAPED.sub(lambda m: re.sub(r"\W", "_", m[1]), verilog)
    modules = {}
    for name, ports, body in MODULE.findall(verilog):
        module = modules[name] = Module(name, ports.split(", "))
        for statement in statements(body, module):
            read(statement, module)
    return modules


def statements(body, module):
    """Return the statements of a module's body; functions become expressions where called."""
    choices = {}

    def choice(match):
        choices[match[2]] = int(match[1]) + 1
        return ""

    body = FUNCTION.sub(choice, body)
    body = BLOCK.sub(single_statements, body)
    body = NESTED.sub(r"    if (\1&&\2) \3    else if (\1) \4", body)
    lines = re.split(r";\n(?!    else)", body)
    found = [line.strip() for line in lines if line.strip()]
    if not choices:
        return found
    return [expand_choice(statement, choices, found) for statement in found]


def single_statements(block):
    """Return a block as one block for each of its statements."""
    text = INNER_BLOCK.sub(
        lambda m: "".join(f"{m[1]}{line}\n" for line in m[2].strip().split("\n")), block[2]
    )
    return "".join(f"  {block[1]}\n{found}" for found in re.findall(r"[^;]+;\n", text))


def expand_choice(statement, choices, found):
    """Turn the call of a function that chooses by a hot bit into a chain of conditions."""
    match = re.fullmatch(r"(assign \S+ = )(\w+)\((.+), \{ (.+) \}, \{ (.+) \}\)", statement)
    if not match or match[2] not in choices:
        return statement
    widths = {m[3]: int(m[2] or 0) + 1 for s in found if (m := DECLARATION.fullmatch(s))}
    values = parts(match[4].split(", "), widths, choices[match[2]])
    hot = parts(match[5].split(", "), widths, 1)
    if len(values) != len(hot):
        raise UnknownVerilog(statement)
    text = match[3]
    for bit, value in zip(hot, values, strict=True):
        text = f"({bit} ? {value} : {text})"
    return match[1] + text


def parts(operands, widths, size):
    """Group the operands of a concatenation into values of ``size`` bits."""
    values, group, bits = [], [], 0
    for operand in operands:
        group.append(operand)
        bits += width_of(operand, widths)
        if bits == size:
            values.append(f"{{ {', '.join(group)} }}" if len(group) > 1 else group[0])
            group, bits = [], 0
        elif bits > size:
            if size != 1 or len(group) != 1:
                raise UnknownVerilog(operand)
            values += [f"{operand}[{bit}]" for bit in reversed(range(bits))]
            group, bits = [], 0
    if group:
        raise UnknownVerilog(str(operands))
    return values


def width_of(operand, widths):
    """Return the bits of a part of a concatenation."""
    if match := re.fullmatch(r"(\d+)'.*", operand):
        return int(match[1])
    match = REFERENCE.fullmatch(operand)
    if not match:
        raise UnknownVerilog(operand)
    if match[2] is None:
        return widths[match[1]]
    return int(match[2]) - int(match[3] or match[2]) + 1


def read(statement, module):
    """Add one statement to its module."""
    if match := MEMORY.fullmatch(statement):
        module.signals[match[2]] = Signal(int(match[1] or 0) + 1, rows=int(match[3]) + 1)
    elif match := DECLARATION.fullmatch(statement):
        kind, last, name, initial = match.groups()
        signal = module.signals.setdefault(name, Signal(int(last or 0) + 1))
        if kind in ("input", "output"):
            signal.direction = kind
        signal.initial = initial or signal.initial
    elif match := ASSIGNMENT.fullmatch(statement):
        module.assignments.append((match[1], match[2]))
    elif match := CLOCKED.fullmatch(statement):
        module.registers.append(Register(match[1], clauses(match[2] + ";")))
    elif (match := INSTANCE.fullmatch(statement)) and match[1] != "if":
        connections = [line.strip() for line in match[3].strip().split("\n")]
        found = dict(CONNECTION.fullmatch(line).groups() for line in connections)
        module.instances.append((match[1], match[2], found))
    else:
        raise UnknownVerilog(statement)


def clauses(text):
    """Return the clauses of a register."""
    found, end = [], 0
    for match in CLAUSE.finditer(text):
        if match.start() != end or (found and not match[0].lstrip().startswith("else")):
            raise UnknownVerilog(text)
        found.append((match[2], match[3].strip(), match[4].strip()))
        end = match.end()
    if end != len(text):
        raise UnknownVerilog(text)
    return found


def flatten(modules, name, stay):
    """Return the module ``name`` with everything below it but the instances that ``stay``."""
    module = modules[name]
    flat = Module(name, module.ports, dict(module.signals), list(module.assignments),
                  list(module.registers))  # fmt: skip
    for kind, place, connections in module.instances:
        if kind in stay:
            flat.instances.append((kind, place, connections))
        else:
            insert(flat, flatten(modules, kind, stay), place, connections)
    return flat


def insert(flat, child, place, connections):
    """Put the contents of an instance into the module that it is in."""
    names = {}
    for name, signal in child.signals.items():
        value = connections.get(name)
        direct = value in flat.signals and flat.signals[value].width == signal.width
        if signal.direction and direct:
            names[name] = value
            flat.signals[value].initial = signal.initial or flat.signals[value].initial
            continue
        names[name] = unused(f"{place}_{name}", flat.signals)
        flat.signals[names[name]] = Signal(signal.width, None, signal.initial, signal.rows)
        if signal.direction == "input" and value:
            flat.assignments.append((names[name], value))
        elif signal.direction == "output" and value:
            flat.assignments.append((value, names[name]))
    flat.assignments += [tuple(replace(text, names) for text in pair) for pair in child.assignments]
    for register in child.registers:
        found = [tuple(part and replace(part, names) for part in clause)
                 for clause in register.clauses]  # fmt: skip
        flat.registers.append(Register(replace(register.clock, names), found))
    for kind, name, inner in child.instances:
        inner = {port: replace(value, names) for port, value in inner.items()}
        flat.instances.append((kind, f"{place}_{name}", inner))


def unused(name, taken):
    """Return ``name``, with a number if it is taken."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found
