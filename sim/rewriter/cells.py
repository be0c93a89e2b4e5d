# SPDX-License-Identifier: Apache-2.0
"""Cells of Yosys as expressions and registers: what a cell of each type computes."""

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

#: Cells with one operand `A` or two, `A` and `B`: the operator of Verilog that means the same.
OPERATORS = {
    "$not": "~", "$pos": "+", "$neg": "-", "$logic_not": "!", "$reduce_and": "&",
    "$reduce_or": "|", "$reduce_bool": "|", "$reduce_xor": "^", "$reduce_xnor": "~^",
    "$and": "&", "$or": "|", "$xor": "^", "$xnor": "~^", "$add": "+", "$sub": "-", "$mul": "*",
    "$lt": "<", "$le": "<=", "$eq": "==", "$ne": "!=", "$ge": ">=", "$gt": ">",
    "$logic_and": "&&", "$logic_or": "||",
    "$shl": "<<", "$sshl": "<<<", "$shr": ">>", "$sshr": ">>>", "$shift": ">>", "$shiftx": ">>",
}  # fmt: skip
#: Operand `B` is a number of places, and never signed.
SHIFTS = {"$shl", "$sshl", "$shr", "$sshr", "$shift", "$shiftx"}
#: Registers. Enabled ones have `EN`, reset ones `SRST`; of these, a reset without the enable is
#: lost in the last.
CLOCKED = {"$dff", "$dffe", "$sdff", "$sdffe", "$sdffce"}


def switch(cell, name):
    """Return whether a parameter of one bit is on."""
    return int(cell["parameters"].get(name, "0"), 2) != 0


def level(cell, bits, polarity):
    """Return the condition that a control input is active; ALWAYS if it is a constant that is."""
    high = switch(cell, polarity)
    if bits.value is None:
        return Condition(((bits, high),))
    if bool(bits.value) != high:
        raise UnknownNetlist(f"a cell {cell['type']} that is never active")
    return ALWAYS


def expression(cell, ports):
    """Return what a cell computes.

    Parameters
    ----------
    cell : dict
        As Yosys writes it.
    ports : dict of str to Bits
        Its connections.

    Raises
    ------
    UnknownNetlist
        If it is of a type, or has parameters, that are not known here.
    """
    kind = cell["type"]
    if kind == "$mux":
        return Expression("choice", (ports["A"], ports["S"], ports["B"]))
    if kind == "$pmux":
        width, operands = ports["A"].width, [ports["A"]]
        for number in reversed(range(ports["S"].width)):  # the lowest has the last word
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
    """Return the register ``name`` that a cell of a type in :data:`CLOCKED` is.

    Parameters and exceptions are those of :func:`expression`.
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
