# SPDX-License-Identifier: Apache-2.0
"""Translate the cells of Yosys into expressions and registers."""

from .bits import Bits
from .netlist import (
    ALWAYS,
    Clause,
    Condition,
    Expression,
    Register,
    Target,
    UnknownNetlist,
)

__all__ = ["CLOCKED", "OPERATORS", "expression", "register", "switch"]

#: Verilog operator of each type of cell that has one operand, `A`, or two, `A` and `B`.
OPERATORS = {
    "$not": "~", "$pos": "+", "$neg": "-", "$logic_not": "!", "$reduce_and": "&",
    "$reduce_or": "|", "$reduce_bool": "|", "$reduce_xor": "^", "$reduce_xnor": "~^",
    "$and": "&", "$or": "|", "$xor": "^", "$xnor": "~^", "$add": "+", "$sub": "-", "$mul": "*",
    "$lt": "<", "$le": "<=", "$eq": "==", "$ne": "!=", "$ge": ">=", "$gt": ">",
    "$logic_and": "&&", "$logic_or": "||",
    "$shl": "<<", "$sshl": "<<<", "$shr": ">>", "$sshr": ">>>", "$shift": ">>", "$shiftx": ">>",
}  # fmt: skip
#: Types whose operand `B` is a number of positions and must be unsigned.
SHIFTS = {"$shl", "$sshl", "$shr", "$sshr", "$shift", "$shiftx"}
#: Types of registers. Those with an `e` have an enable `EN`, those with an `s` a synchronous reset
#: `SRST`. In `$sdffce`, the reset takes effect only while the enable is active.
CLOCKED = {"$dff", "$dffe", "$sdff", "$sdffe", "$sdffce"}


def switch(cell, name):
    """Return whether a one-bit parameter of a cell is set."""
    return int(cell["parameters"].get(name, "0"), 2) != 0


def level(cell, bits, polarity):
    """Return the condition that a control input is active; ALWAYS if it is constantly active."""
    high = switch(cell, polarity)
    if bits.value is None:
        return Condition(((bits, high),))
    if bool(bits.value) != high:
        raise UnknownNetlist(f"a cell {cell['type']} that is never active")
    return ALWAYS


def expression(cell, ports):
    """Return the expression that a cell computes.

    Parameters
    ----------
    cell : dict
        The cell as Yosys writes it.
    ports : dict of str to Bits
        Bits that its ports connect.

    Raises
    ------
    UnknownNetlist
        If the type of the cell, or a combination of its parameters, is unknown.
    """
    kind = cell["type"]
    if kind == "$mux":
        return Expression("choice", (ports["A"], ports["S"], ports["B"]))
    if kind == "$pmux":
        width, operands = ports["A"].width, [ports["A"]]
        for number in reversed(range(ports["S"].width)):  # the lowest takes precedence
            operands += [
                ports["S"].part(number, 1),
                ports["B"].part(number * width, width),
            ]
        return Expression("choice", tuple(operands))
    if kind not in OPERATORS:
        raise UnknownNetlist(f"a cell of type {kind}")
    signed, also = switch(cell, "A_SIGNED"), switch(cell, "B_SIGNED")
    if "B" in ports and (also if kind in SHIFTS else signed != also):
        raise UnknownNetlist(f"operands of {kind} that are signed and unsigned")
    return Expression(kind, tuple(ports[name] for name in "AB" if name in ports), signed)


def register(cell, name, ports):
    """Return a cell of a type in :data:`CLOCKED` as the register ``name``.

    The other parameters and the exceptions are those of :func:`expression`.
    """
    if not switch(cell, "CLK_POLARITY"):
        raise UnknownNetlist("a falling edge")
    enable = level(cell, ports["EN"], "EN_POLARITY") if "EN" in ports else ALWAYS
    target, clauses = Target(name), []
    if "SRST" in ports:
        reset = level(cell, ports["SRST"], "SRST_POLARITY")
        if cell["type"] == "$sdffce":
            reset = Condition(enable.tests + reset.tests)
        digits = cell["parameters"]["SRST_VALUE"].replace("x", "0")
        value = Bits.constant(int(digits, 2), len(digits))
        clauses.append(Clause(reset, target, Expression("bits", (value,))))
    clauses.append(Clause(enable, target, Expression("bits", (ports["D"],))))
    return Register(ports["CLK"], clauses)
