# SPDX-License-Identifier: Apache-2.0
import pytest

from sim.rewriter import UnknownNetlist
from sim.rewriter.netlist import Bits, Run, Signal, expression, register
from sim.rewriter.process import Printer

A, B = Bits.whole("a", 4), Bits.whole("b", 4)
PRINTER = Printer({"a": Signal(4), "b": Signal(4), "s": Signal(2), "d": Signal(8)})


def cell(kind, **parameters):
    return {"type": kind, "parameters": {name: str(value) for name, value in parameters.items()}}


@pytest.mark.parametrize(
    ("kind", "signed", "text"),
    [
        ("$add", 0, "a + b"),
        ("$add", 1, "$signed(a) + $signed(b)"),
        ("$le", 1, "$signed(a) <= $signed(b)"),
        ("$logic_and", 0, "a && b"),
        ("$xnor", 0, "a ~^ b"),
    ],
)
def test_operators_mean_what_the_cell_does(kind, signed, text):
    found = expression(cell(kind, A_SIGNED=signed, B_SIGNED=signed), {"A": A, "B": B, "Y": A})
    assert PRINTER.expression(found) == text


def test_the_number_of_places_of_a_shift_is_not_signed():
    found = expression(cell("$sshr", A_SIGNED=1, B_SIGNED=0), {"A": A, "B": B})
    assert PRINTER.expression(found) == "$signed(a) >>> b"
    with pytest.raises(UnknownNetlist):
        expression(cell("$shift", A_SIGNED=0, B_SIGNED=1), {"A": A, "B": B})


def test_operands_of_one_operator_are_all_signed_or_none_is():
    with pytest.raises(UnknownNetlist):
        expression(cell("$add", A_SIGNED=0, B_SIGNED=1), {"A": A, "B": B})


def test_of_several_hot_bits_the_lowest_chooses():
    ports = {"A": A, "B": Bits.whole("d", 8), "S": Bits.whole("s", 2)}
    found = expression(cell("$pmux"), ports)
    assert PRINTER.expression(found) == "(s[0] ? d[3:0] : (s[1] ? d[7:4] : a))"
    assert found.passed == (A, Bits.of([Run("d", 4, 4)]), Bits.of([Run("d", 0, 4)]))


def test_an_enable_may_gate_the_reset():
    ports = {"CLK": Bits.whole("clk", 1), "D": A, "Q": B, "EN": Bits.of([Run("s", 0, 1)]),
             "SRST": Bits.of([Run("s", 1, 1)])}  # fmt: skip
    about = {"CLK_POLARITY": 1, "EN_POLARITY": 1, "SRST_POLARITY": 0, "SRST_VALUE": "10x1"}
    clauses = register(cell("$sdffce", **about), "b", ports).clauses
    assert [PRINTER.condition(clause.condition) for clause in clauses] == ["s[0] && !s[1]", "s[0]"]
    assert clauses[0].value.operands == (Bits.constant(0b1001, 4),)
    clauses = register(cell("$sdffe", **about), "b", ports).clauses
    assert [PRINTER.condition(clause.condition) for clause in clauses] == ["!s[1]", "s[0]"]


def test_a_falling_edge_is_refused():
    with pytest.raises(UnknownNetlist, match="falling"):
        register(cell("$dff", CLK_POLARITY=0), "b", {"CLK": A, "D": A, "Q": B})
