# SPDX-License-Identifier: Apache-2.0
"""Conditions on two rows: random ones, and what each says of two rows, by Python itself."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import reduce
import random

import pyarrow as pa

from host.query.quantities import parse_duration

__all__ = ["fulfils", "random_condition"]


class _Value:
    """A value whose operators are SQL's: null in, null out, but for what decides ``&`` and ``|``.

    Texts beside times are durations, or times.
    """

    def __init__(self, value):
        self.value = Fraction(value) if isinstance(value, Decimal) else value

    def _with(self, other, function):
        mine, theirs = self.value, other.value if isinstance(other, _Value) else other
        mine, theirs = _read(mine, theirs), _read(theirs, mine)
        if mine is None or theirs is None:
            return _Value(None)
        if isinstance(mine, float) or isinstance(theirs, float):
            mine, theirs = float(mine), float(theirs)
        return _Value(function(mine, theirs))

    def __add__(self, other):
        return self._with(other, lambda one, two: one + two)

    def __sub__(self, other):
        return self._with(other, lambda one, two: one - two)

    def __radd__(self, other):
        return self + other

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        return self._with(other, lambda one, two: one * two)

    def __rmul__(self, other):
        return self * other

    def __mod__(self, other):
        return self._with(other, _remainder)

    def __neg__(self):
        return self * -1

    def __abs__(self):
        return _Value(None if self.value is None else abs(self.value))

    def __eq__(self, other):
        return self._with(other, lambda one, two: _rank(one) == _rank(two))

    def __ne__(self, other):
        return self._with(other, lambda one, two: _rank(one) != _rank(two))

    def __lt__(self, other):
        return self._with(other, lambda one, two: _rank(one) < _rank(two))

    def __le__(self, other):
        return self._with(other, lambda one, two: _rank(one) <= _rank(two))

    def __gt__(self, other):
        return self._with(other, lambda one, two: _rank(one) > _rank(two))

    def __ge__(self, other):
        return self._with(other, lambda one, two: _rank(one) >= _rank(two))

    def __and__(self, other):
        return _Value(_joined(self.value, other.value, False))

    def __or__(self, other):
        return _Value(_joined(self.value, other.value, True))

    __hash__ = None


def _remainder(value, modulus):
    """Return what is left of a value, of a time since 1970."""
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1, tzinfo=value.tzinfo)) % modulus
    return (value - date(1970, 1, 1)) % modulus if isinstance(value, date) else value % modulus


def _joined(one, other, deciding):
    if deciding in (one, other):
        return deciding
    return None if None in (one, other) else not deciding


def _read(value, other):
    """Return a value, which is a text if the other one is a time, as a duration or a time."""
    if isinstance(value, str) and isinstance(other, timedelta):
        return timedelta(microseconds=parse_duration(value).nanoseconds / 1000)
    if isinstance(value, str) and isinstance(other, (datetime, date)):
        try:
            return type(other).fromisoformat(value)
        except ValueError:
            return _read(value, timedelta())
    return value


def _rank(value):
    return (1, 0) if value != value else (0, value)


class _Row:
    def __init__(self, values):
        self._values = values

    def __getattr__(self, name):
        return _Value(self._values[name])

    __getitem__ = __getattr__


def _extreme(choose, values):
    values = [one if isinstance(one, _Value) else _Value(one) for one in values]
    if any(one.value is None for one in values):
        return _Value(None)
    return reduce(lambda one, two: choose(one, two), values)


def fulfils(condition, left, right):
    """Tell whether a condition is true of two rows, which are dicts of Python's own values."""
    names = {
        "l": _Row(left),
        "r": _Row(right),
        "abs": abs,
        "min": lambda *values: _extreme(lambda a, b: a if (a <= b).value else b, values),
        "max": lambda *values: _extreme(lambda a, b: a if (a >= b).value else b, values),
        "__builtins__": {},
    }
    return eval(condition.text, names).value is True


def random_condition(rng: random.Random, tables) -> str:
    """Return the text of a random condition on the columns of two tables of random cases."""
    columns = [
        [
            (side, name, kind)
            for name, kind in zip(table.column_names, table.schema.types, strict=True)
        ]
        for side, table in zip("lr", tables, strict=True)
    ]
    return _condition(rng, columns, rng.choice([1, 1, 2, 3]))


def _condition(rng, columns, size):
    if size == 1:
        return _comparison(rng, columns)
    parts = [_condition(rng, columns, 1) for _ in range(size)]
    joined = f" {rng.choice(['and', 'or'])} ".join(parts)
    return f"not ({joined})" if rng.random() < 0.3 else joined


def _family(kind):
    """Return a name of the kinds that can be compared with one another."""
    for family, test in (
        ("number", pa.types.is_integer), ("float", pa.types.is_floating),
        ("decimal", pa.types.is_decimal), ("date", pa.types.is_date), ("text", pa.types.is_string),
        ("truth", pa.types.is_boolean), ("bytes", pa.types.is_binary),
    ):  # fmt: skip
        if test(kind):
            return family
    return f"time {kind.tz}"


def _comparison(rng, columns):
    side, name, kind = rng.choice([*columns[0], *columns[1]])
    one, family = f"{side}[{name!r}]", _family(kind)
    alike = [
        f"{other}[{called!r}]"
        for of_side in columns
        for other, called, dtype in of_side
        if _family(dtype) == family
    ]
    sign = rng.choice(["==", "!=", "<", "<=", ">", ">="])
    other = rng.choice(alike)
    if family == "truth":
        return rng.choice(
            [one, f"not {one}", f"{one} {sign[:1].replace('<', '=').replace('>', '!')}= {other}"]
        )
    if family in ("text", "bytes") or (family == "date" and rng.random() < 0.5):
        return f"{one} {sign} {other}"
    if family.startswith(("time", "date")):
        length = rng.choice(["'2d'", "'-1d'", "'0s'"] if family == "date" else ["'3s'", "'1500ms'"])
        difference = f"{one} - {other}"
        if rng.random() < 0.2:
            return f"{one} % {'3d' if family == 'date' else '2s'!r} {sign} {other} % '1d'"
        return f"{rng.choice([f'abs({difference})', difference])} {sign} {length}"
    constant = rng.choice(["0", "3", "-2", "2.5"])
    return rng.choice(
        [
            f"{one} {sign} {other}",
            f"abs({one} - {other}) {sign} {constant}",
            f"{one} - {other} {sign} {constant}",
            f"{one} + {constant} {sign} {other} * 2",
            f"{one} * {other} {sign} {constant}",
            *([] if family == "float" else [f"{one} % 3 {sign} {other} % 2.5"]),
            f"min({one}, {other}) {sign} {constant}",
            f"{constant} {sign} max({one}, -{other})",
        ]
    )
