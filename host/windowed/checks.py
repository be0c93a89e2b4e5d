# SPDX-License-Identifier: Apache-2.0
"""Rules for the description of a windowed operator; an error names the rule and the value."""

from collections import Counter
from collections.abc import Iterable

from host.errors import OperatorError
from host.expressions import Interval, interval
from host.windowed.description import Description
from host.windowed.parts import TIME, Field, identifier

__all__ = ["INSTANCES", "check_operator", "check_results"]

#: The window types, the seed's WT.
INSTANCES = ("multi", "single")


def check_operator(operator: Description) -> None:
    """Raise unless windows, fields, keys and kind of an operator agree.

    Raises
    ------
    OperatorError, ExpressionError
    """
    identifier(operator.name, "An operator")
    _check_windows(operator)
    for schema in operator.schemas:
        if not schema:
            raise _wrong(operator, "must have at least one field in each input")
        _check_distinct(operator, (field.name for field in schema), "field")
    _check_keys(operator)
    _check_kind(operator)


def check_results(operator: Description) -> None:
    """Raise unless an operator, whose reductions are resolved, can give its results.

    Raises
    ------
    OperatorError, ExpressionError
    """
    assert operator.key_names is not None
    assert operator.outputs is not None
    reductions = [reduction.name for reduction in operator.reductions]
    outputs = [output.name for output in operator.outputs]
    _check_distinct(operator, [*operator.key_names, *reductions], "part of a key or reduction")
    _check_distinct(operator, [*operator.key_names, *outputs], "part of a key or output")
    edge = Interval(TIME.low - operator.size, TIME.high + operator.size)
    names = {
        "start": edge,
        "end": edge,
        **dict(zip(operator.key_names, operator.key_ranges, strict=True)),
        **{reduction.name: reduction.range for reduction in operator.reductions},
    }
    for output in operator.outputs:
        interval(output.value, names)
        if output.per is not None:
            interval(output.per, names)
    if operator.having is not None:
        interval(operator.having, names)
    if operator.match is not None:
        interval(operator.match, operator.pair_ranges)


def _wrong(operator: Description, rule: str) -> OperatorError:
    return OperatorError(f"Operator {operator.name!r} {rule}.")


def _check_windows(operator: Description) -> None:
    for what, value in (("size", operator.size), ("advance", operator.advance)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= TIME.high:
            raise _wrong(operator, f"must have a window {what} of at least 1, not {value!r}")
    if operator.advance > operator.size:
        raise _wrong(
            operator,
            f"must advance its windows by at most their size, {operator.size}, so that no tuple "
            f"falls between two of them; not by {operator.advance}",
        )
    if operator.instances not in INSTANCES:
        raise _wrong(
            operator, f"must have instances {' or '.join(INSTANCES)}, not {operator.instances!r}"
        )


def _check_distinct(operator: Description, names: Iterable[str], what: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise _wrong(operator, f"must call each {what} by a name of its own, not {repeated[0]!r}")


def _check_keys(operator: Description) -> None:
    assert operator.key_names is not None
    lengths = {len(key.parts) for key in operator.keys}
    if len(lengths) > 1:
        raise _wrong(operator, f"must have keys of one length, not of {sorted(lengths)} parts")
    parts = lengths.pop() if lengths else 0
    if len(operator.key_names) != parts:
        raise _wrong(
            operator, f"must name the {parts} parts of its keys, not {list(operator.key_names)}"
        )
    for name, at in zip(operator.key_names, operator.key_ranges, strict=True):
        Field(name, at.bits, at.signed)
    for key in operator.keys:
        for ranges in operator.tuple_ranges:
            if key.when is not None:
                interval(key.when, ranges)


def _check_kind(operator: Description) -> None:
    if operator.match is not None and operator.inputs == 1:
        raise _wrong(operator, "has `match`, so it must have two inputs: give it `right_fields`")
    if operator.kind == "aggregate" and operator.inputs == 2:
        raise _wrong(
            operator, "aggregates without `match`, so it has one input: leave out `right_fields`"
        )
    if not operator.reductions and (operator.outputs or operator.having is not None):
        raise _wrong(operator, "has no reductions, so it can have neither `outputs` nor `having`")
    if operator.kind != "aggregate" and operator.instances != "single":
        raise _wrong(
            operator,
            "gives results when tuples arrive, so it must have instances 'single': from several "
            "windows of a tuple, results would not leave in the order of their times",
        )
    if operator.in_turns and (operator.kind != "join" or not operator.keys):
        raise _wrong(operator, "can store in turns only as a join, and with keys to take turns")
    parts = [part for key in operator.keys for part in key.parts]
    varies = any(part.names for part in parts) or any(key.when for key in operator.keys)
    if operator.in_turns and varies:
        raise _wrong(operator, "must have numbers as keys, which all tuples have, to take turns")
