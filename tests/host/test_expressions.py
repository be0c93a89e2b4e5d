# SPDX-License-Identifier: Apache-2.0

import ast
import re
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from host.errors import ExpressionError
from host.expressions import (
    FUNCTIONS,
    INT64,
    Expression,
    Interval,
    Record,
    Symbol,
    evaluate,
    interval,
    maximum,
    minimum,
    where,
)
from tests.host.operators.texts import RANGES, texts, values

FIELDS = {name: Interval.of_field(*shape) for name, shape in RANGES.items()}

#: What a text means, by Python itself.
PYTHON = {"where": lambda c, a, b: a if c else b, "abs": abs, "min": min, "max": max}


def by_python(text, fields):
    names = {"x": fields["x"], "y": fields["y"], "l": SimpleNamespace(z=fields["l.z"])}
    return eval(text, {"__builtins__": {}}, PYTHON | names)


@given(texts(), values())
def test_canonical_text_means_what_python_says_and_stays_as_it_is(text, fields):
    expression = Expression(text)
    assert Expression(expression.text) == expression
    assert evaluate(expression, fields) == int(by_python(expression.text, fields))
    assert type(evaluate(expression, fields)) is int


@given(texts(), st.lists(values(), min_size=1, max_size=20))
def test_arrays_are_evaluated_like_integers_and_within_the_interval(text, rows):
    expression = Expression(text)
    bounds = interval(expression, FIELDS)
    columns = {name: np.array([row[name] for row in rows], dtype=np.int64) for name in FIELDS}
    got = np.broadcast_to(evaluate(expression, columns), len(rows))
    want = [evaluate(expression, row) for row in rows]
    assert got.tolist() == want
    assert np.asarray(got).dtype == np.int64
    assert bounds.low <= min(want)
    assert max(want) <= bounds.high
    held = Interval.of_field(bounds.bits, bounds.signed)
    assert held.holds(bounds)


@given(st.integers(-300, 300), st.integers(0, 600))
def test_interval_takes_the_fewest_bits(low, span):
    at = Interval(low, low + span)
    assert Interval.of_field(at.bits, at.signed).holds(at)
    if at.bits > 1:
        assert not Interval.of_field(at.bits - 1, at.signed).holds(at)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda t: t.x + 1, "x + 1"),
        (lambda t: 1 - t.x, "1 - x"),
        (lambda t: (t.x > 3) & (t.y != 0), "(x > 3) & (y != 0)"),
        (lambda t: ~(t.x > 3), "(x > 3) == 0"),
        (lambda t: ~t.x, "~x"),
        (lambda t: where(t.x < t.y, t.x, -5), "where(x < y, x, -5)"),
        (lambda t: minimum(t.x, maximum(t.y, 0), 9), "min(x, max(y, 0), 9)"),
        (lambda t: abs(t["x"]) * 2**4, "abs(x) * 16"),
        (lambda t: sum(t[f"w{i}"] << i for i in range(3)), "0 + (w0 << 0) + (w1 << 1) + (w2 << 2)"),
        (lambda t: 12, "12"),
        (lambda t: t.x // 3 % 2 ^ 7 | 1, "x // 3 % 2 ^ 7 | 1"),
        (lambda t: +t.x >> 2, "x >> 2"),
        (lambda t: 3 * t.x <= 2, "3 * x <= 2"),
        (lambda t: 5 & t.x, "5 & x"),
        (lambda t: 5 | (6 ^ t.x), "5 | 6 ^ x"),
        (lambda t: t.x > t.y, "x > y"),
        (lambda t: t.x >= 2, "x >= 2"),
        (lambda t: t.x == 2, "x == 2"),
    ],
)
def test_function_becomes_its_text(function, text):
    assert Expression.of(function, Record()).text == text


def test_function_of_two_tuples_reads_fields_of_each():
    expression = Expression.of(lambda l, r: l.x - r.x <= 10, Record("l"), Record("r"))
    assert expression.text == "l.x - r.x <= 10"
    assert expression.names == ("l.x", "r.x")
    assert Expression.of(lambda a, b: a | b, Symbol("a"), Symbol("b")).names == ("a", "b")


def test_a_function_may_add_to_a_value_step_by_step():
    def added(t):
        total = t.x
        total += 2 * t.y
        total -= 1
        return total + t.x

    assert Expression.of(added, Record()).text == "x + 2 * y - 1 + x"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda t: t.x**2, "Pow is not in the language; multiply"),
        (lambda t: t.x / 2, "Div is not in the language; use //"),
        (lambda t: divmod(t.x, 2)[0], "NumPy's divmod is not in the language; use "),
    ],
)
def test_a_function_whose_operator_is_not_in_the_language_is_refused(function, message):
    with pytest.raises(ExpressionError, match=re.escape(message)):
        Expression.of(function, Record())


def test_choices_work_on_numbers_too():
    assert where(3 > 2, "yes", "no") == "yes"
    assert (minimum(3, 1, 2), maximum(3, 1, 2)) == (1, 3)


def test_numbers_and_expressions_are_sources():
    assert Expression.of(-4).text == "-4"
    assert Expression.of(True).text == "1"
    assert Expression.of("( x )") == Expression("x")
    assert Expression.of(Expression("x")) == Expression("x")
    assert str(Expression("a +b")) == "a + b"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x and y", "Expression 'x and y': And is not in the language; join conditions with &"),
        ("x or y", "Or is not in the language; join conditions with |"),
        ("not x", "Not is not in the language; write ~(condition)"),
        ("x / 2", "Div is not in the language; use // with a positive number"),
        ("x ** 2", "Pow is not in the language; multiply"),
        ("x @ y", "MatMult is not in the language; use != % &"),
        ("0 < x < 9", "a chain of comparisons is not in the language; join two comparisons"),
        ("x in y", "In is not in the language"),
        ("x // y", "// needs a positive number on its right; divide by a number"),
        ("x % 0", "% needs a positive number on its right"),
        ("x << y", "<< needs a number from 0 to 63 on its right"),
        ("x >> 64", ">> needs a number from 0 to 63 on its right"),
        ("1.5 * x", "1.5 is no integer; write an integer"),
        ("'a'", "'a' is no integer"),
        ("x[0]", "Subscript is not in the language; use integers, names of fields"),
        ("f(x)", "function 'f' is not in the language; use abs, max, min, where"),
        ("x.real()", "function 'x.real' is not in the language"),
        ("where(x, 1)", "where takes 3 arguments by position"),
        ("min(x)", "min takes 2 to 8 arguments by position"),
        ("min(*x)", "min takes 2 to 8 arguments by position"),
        ("max(x, default=1)", "max takes 2 to 8 arguments by position"),
        ("min + 1", "'min' is a function, not a value; call it, or rename the field"),
        ("(x + 1).y", "an attribute of an expression has no meaning; name a field"),
        ("x +", "it is no Python expression (invalid syntax); correct it"),
        ("", "it is no Python expression"),
        ("__import__('os')", "function '__import__' is not in the language"),
        ("1 +" * 2000 + "1", "it has 6001 characters, of 4000 at most; split it up"),
        ([1], "Expression '[1]': it is no expression; give a text, an integer or a function"),
        (lambda t: 1 if t.x > 2 else 0, "Expression 'x > 2': its value is not known while the"),
        (lambda t: min(t.x, 2), "use where(condition, a, b), minimum, maximum"),
        (lambda t: t.x * 1.5, "1.5 is no integer; write an integer"),
        (lambda t: None, "a value of type NoneType has no place in an expression; compute"),
        (lambda t: t.x / 2, "Div is not in the language"),
    ],
)
def test_what_is_not_in_the_language_is_refused_with_its_remedy(source, message):
    with pytest.raises(ExpressionError) as caught:
        Expression.of(source, Record())
    assert message in str(caught.value)


def test_deep_nesting_is_refused_and_does_not_end_the_process():
    with pytest.raises(ExpressionError, match="it is no Python expression"):
        Expression("(" * 1900 + "x" + ")" * 1900)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("big * big * 1", "its part 'big * big' can be from -18446744069414584320 to"),
        ("where(big * big > 3, 1, 0)", "which is more than 64 bits; give its fields fewer bits"),
        ("gone + 1", "there is no 'gone' here; the names are: big, small"),
        (str(1 << 63), "more than 64 bits"),
    ],
)
def test_what_can_leave_64_bits_is_refused(text, message):
    ranges = {"big": Interval.of_field(33, True), "small": Interval(0, 1)}
    with pytest.raises(ExpressionError) as caught:
        interval(Expression(text), ranges)
    assert message in str(caught.value)


def test_evaluation_names_a_value_that_is_missing():
    with pytest.raises(ExpressionError, match="there is no 'y' here; the names are: x"):
        evaluate(Expression("x + y"), {"x": 1})


def test_limits_of_the_language():
    assert Interval.of_field(64, True) == INT64
    assert (Interval(0, 0).bits, Interval(-1, 0).bits) == (1, 1)
    assert interval(Expression("x % 4"), {"x": Interval(5, 6)}) == Interval(1, 2)
    assert interval(Expression("x & 7"), {"x": Interval(-9, 300)}) == Interval(0, 7)
    assert set(FUNCTIONS) == set(PYTHON)
    assert all(ast.parse(f"{name}(1, 2, 3)") for name in FUNCTIONS)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.int64(2), "2"), (np.uint8(7), "7"), (np.float64(1.5), "1.5"), (np.float32(1.5), "1.5"),
        (np.array(3), "3"), (np.datetime64("2024-01-02"), "'2024-01-02'"),
    ],
)  # fmt: skip
def test_scalars_of_numpy_stand_on_either_side_of_a_field(value, text):
    field = Record("l").x
    assert repr(value <= field) in (f"{text} <= l.x", f"l.x >= {text}")
    assert repr(field <= value) == f"l.x <= {text}"
    if text.isdigit():
        assert repr(value * field) == f"{text} * l.x"
        assert repr(field - value) == f"l.x - {text}"


@pytest.mark.parametrize(
    "value", [np.datetime64(1, "ns"), np.array([1, 2]), np.timedelta64(5, "ns")]
)
def test_what_has_no_place_in_an_expression_is_not_taken_for_a_number(value):
    for compute in (lambda: Record("l").x <= value, lambda: value <= Record("l").x):
        with pytest.raises(ExpressionError, match="has no place in an expression"):
            compute()
