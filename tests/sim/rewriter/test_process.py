# SPDX-License-Identifier: Apache-2.0
"""One process after another does what all registers do at once."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from sim.rewriter.netlist import (
    ALWAYS,
    Bits,
    Clause,
    Condition,
    Expression,
    Module,
    Register,
    Run,
    Signal,
    Target,
)
from sim.rewriter.process import ModuleText

WIDTH = 4
INPUTS, VARIABLES, REGISTERS = ("i", "j"), ("u", "v", "w"), ("a", "b", "c", "d", "e", "f")
STATES = (*INPUTS, *REGISTERS)


def one(name):
    """A signal."""
    return Bits.whole(name, WIDTH)


def expressions(names):
    """Anything that is computed from some signals, or a row of the memory ``m``."""
    operands = st.one_of(
        st.sampled_from(names).map(one), st.integers(0, 15).map(lambda n: Bits.constant(n, WIDTH))
    )
    bits = st.sampled_from(names).map(lambda name: Bits.of([Run(name, 1, 1)]))
    return st.one_of(
        st.builds(lambda a: Expression("bits", (a,)), operands),
        st.builds(lambda kind, a, b: Expression(kind, (a, b)),
                  st.sampled_from(["$add", "$xor", "$and"]), operands, operands),
        st.builds(lambda a, s, b: Expression("choice", (a, s, b)), operands, bits, operands),
        st.sampled_from(names).map(lambda name: Expression("row", (one(name),), memory="m")),
    )  # fmt: skip


@st.composite
def logics(draw):
    """Logic with variables, registers under few conditions, resets, and a memory."""
    variables = {
        name: draw(expressions(STATES + VARIABLES[:place])) for place, name in enumerate(VARIABLES)
    }
    everything = STATES + VARIABLES
    tests = st.tuples(
        st.sampled_from(everything).map(lambda name: Bits.of([Run(name, 0, 1)])), st.booleans()
    )
    conditions = draw(
        st.lists(st.lists(tests, min_size=1, max_size=2).map(lambda found: Condition(tuple(found))),
                 min_size=2, max_size=3)
    )  # fmt: skip
    reset = conditions[0]
    registers = []
    for name in REGISTERS:
        chosen = draw(st.lists(st.sampled_from([*conditions, ALWAYS]), min_size=1, max_size=3))
        chosen = chosen[: chosen.index(ALWAYS) + 1] if ALWAYS in chosen else chosen
        clauses = [Clause(when, Target(name), draw(expressions(everything))) for when in chosen]
        if draw(st.booleans()):
            zero = Expression("bits", (Bits.constant(draw(st.integers(0, 15)), WIDTH),))
            clauses.insert(0, Clause(reset, Target(name), zero))
        registers.append(Register(one("clk"), clauses))
    target = Target("m", one(draw(st.sampled_from(everything))), 0, WIDTH)
    value = Expression("bits", (one(draw(st.sampled_from(everything))),))
    write = Clause(draw(st.sampled_from([*conditions, ALWAYS])), target, value)
    registers.append(Register(one("clk"), [write]))
    signals = {name: Signal(WIDTH) for name in everything} | {"m": Signal(WIDTH, rows=16)}
    ports = dict.fromkeys(("clk", *INPUTS), "input")
    shown = draw(st.lists(st.sampled_from(everything), max_size=3, unique=True))
    ports |= {f"{name}_shown": "output" for name in shown}
    outputs = {f"{name}_shown": one(name) for name in shown}
    return Module("m", ports, signals, variables, registers, outputs, clock="clk")


def value_of(expression, state):
    """Value of an expression."""

    def value(bits):
        (run,) = bits.runs
        if run.name is None:
            return run.low
        return state[run.name] >> run.low & (1 << run.width) - 1

    operands = [value(bits) for bits in expression.operands]
    if expression.kind == "row":
        return state["m"][operands[0]]
    if expression.kind == "choice":
        return operands[2] if operands[1] else operands[0]
    if expression.kind == "bits":
        return operands[0]
    one, two = operands
    return {"$add": one + two, "$xor": one ^ two, "$and": one & two}[expression.kind] % 16


def holds(condition, state):
    """Does a condition hold?"""
    return all(
        bool(value_of(Expression("bits", (bits,)), state)) == high for bits, high in condition.tests
    )


def at_once(logic, state):
    """The state after an edge at which all registers change at once."""
    old = dict(state)
    for name, expression in logic.variables.items():
        old[name] = value_of(expression, old)
    new = state | {"m": list(state["m"])}
    for register in logic.registers:
        clause = next((c for c in register.clauses if holds(c.condition, old)), None)
        if clause and clause.target.width:
            (run,) = clause.target.address.runs
            new["m"][old[run.name]] = value_of(clause.value, old)
        elif clause:
            new[register.name] = value_of(clause.value, old)
    return new


def in_python(text):
    """An expression or condition of the text as Python."""
    text = re.sub(r"\d+'h(\w+)", r"0x\1", text)
    text = re.sub(r"\((\S+) \? (\S+) : (\S+)\)", r"(\2 if \1 else \3)", text)
    text = re.sub(r"\b(?!m\b)(\w+)\[(\d+)\]", r"(\1 >> \2 & 1)", text)
    return re.sub(r"!(\(.*?\)|\w+)", r"(not \1)", text).replace("&&", "and")


def statement(line):
    """A line of the process as Python."""
    indent = " " * (len(line) - len(line.lstrip()))
    line = line.strip()
    if match := re.fullmatch(r"(else )?if \((.*)\) begin", line):
        return f"{indent}{'el' if match[1] else ''}if {in_python(match[2])}:\n{indent}  pass"
    if line == "else begin":
        return f"{indent}else:\n{indent}  pass"
    if line == "end":
        return ""
    target, sign, value = re.fullmatch(r"(\S+) (<=|=) (.*);", line).groups()
    if sign == "=":
        return f"{indent}{target} = ({in_python(value)}) & 15"
    name, _, address = target.rstrip("]").partition("[")
    return f"{indent}later.append(({name!r}, {address or None}, ({in_python(value)}) & 15))"


def one_by_one(lines, state):
    """The state after a process whose lines are these."""
    new = state | {"m": list(state["m"]), "later": []}
    exec("\n".join(map(statement, lines)), {}, new)
    for name, address, value in new["later"]:
        if address is None:
            new[name] = value
        else:
            new[name][address] = value
    return {name: new[name] for name in state}


@settings(max_examples=50)
@given(logics(), st.lists(st.integers(0, 15), min_size=len(STATES), max_size=len(STATES)))
def test_the_order_of_a_process_changes_nothing(logic, values):
    before = dict(zip(STATES, values, strict=True)) | {"m": [value * 7 % 16 for value in range(16)]}
    expected = at_once(logic, before)
    lines = ModuleText(logic).process()
    assert one_by_one(lines, before) == expected, "\n".join(lines)
