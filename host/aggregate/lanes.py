# SPDX-License-Identifier: Apache-2.0
"""Which reductions of an accelerator are the states of a query, and which fields carry the values.

An accelerator is generated for an operator with names and expressions of its own. A reduction that
reads nothing but one field can be a state of any column: the host puts what the column's rows
contribute into the field. A null contributes what changes no state, so two states of a column with
nulls need a field each. Without nulls they can share one, and the number of rows is that of values.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from host.aggregate.values import ROWS, AggregateStates, Array, State
from host.errors import AcceleratorLimitError, KeyRangeError
from host.windowed import WindowedOperator
from host.windowed.parts import Field

__all__ = ["Lanes"]

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Want:
    """States that have to come from one field: a column's functions, or one number per row."""

    column: str | None
    functions: tuple[str, ...]
    states: tuple[State, ...]


class Lanes:
    """The places of a query's states in the words of an accelerator.

    Parameters
    ----------
    operator : WindowedOperator
        What the accelerator computes.
    values : AggregateStates
        The states of the query.
    keyed : bool
        Whether the query has keys.

    Attributes
    ----------
    key : str or None
        The field of the key, if the operator has keys.

    Raises
    ------
    AcceleratorLimitError
        If the accelerator does not compute what the query needs.
    """

    def __init__(self, operator: WindowedOperator, values: AggregateStates, *, keyed: bool) -> None:
        self._operator, self._values = operator, values
        _require_plain_results(operator)
        self.key = _key_field(operator, keyed=keyed)
        self._fields = {field.name: field for field in operator.fields if field.name != self.key}
        self._reductions = {
            name: {
                one.function: one.name
                for one in operator.reductions
                if one.function != "count" and str(one.value) == name
            }
            for name in self._fields
        }
        counting = (one.name for one in operator.reductions if one.function == "count")
        self._count = next(counting, None)
        self._field_of: dict[State, str] = {}
        self._assign()

    def columns(self, values: Sequence[Array]) -> dict[str, Int64s]:
        """Return the fields of tuples, but for the key, from what rows contribute to each state.

        Raises
        ------
        KeyRangeError
            If a value does not fit its field.
        AcceleratorLimitError
            If there is a null that the accelerator cannot leave out.
        """
        given = dict(zip(self._values.states, values, strict=True))
        rows = len(values[0])
        columns = {name: np.zeros(rows, np.int64) for name in self._fields}
        for state, name in self._field_of.items():
            function, column = state
            numbers = given[state]
            if column is not None and function != "count":
                valid = given["count", column].astype(np.bool_)
                if numbers.dtype == np.uint64:
                    _require_range(column, numbers[valid], self._fields[name])
                    numbers = numbers.astype(np.int64)  # nulls are replaced below
                if not valid.all():
                    self._require_lanes(state)
                    numbers = np.where(valid, numbers, _neutral(function, self._fields[name]))
                _require_range(column, numbers, self._fields[name])
            columns[name] = numbers.astype(np.int64)
        for state in self._values.states:
            if state not in self._field_of and state != ROWS and not given[state].all():
                self._refuse_null(str(state[1]))
        return columns

    def states(self, window: Mapping[str, Int64s], count: int) -> tuple[Array, ...]:
        """Return the states of the query from the reductions of so many windows."""
        rows = np.ones(count, np.int64) if self._count is None else window[self._count]
        if ROWS in self._field_of:
            rows = window[self._reductions[self._field_of[ROWS]]["sum"]]
        found = []
        for state in self._values.states:
            name = self._field_of.get(state)
            function = "sum" if state[0] == "count" else state[0]
            found.append(rows if name is None else window[self._reductions[name][function]])
        return tuple(found)

    def _assign(self) -> None:
        """Give each state that needs one a field, states of one column different ones if possible.

        Numbers of values come last: a column without nulls needs none.
        """
        numbers = [state for state in self._values.states if state[0] != "count"]
        for _, column in numbers:
            if self._values.is_float(str(column)):
                raise AcceleratorLimitError(
                    f"Column {column!r} has floats, but accelerators reduce integers",
                    "cast it to integers of a smaller unit, or aggregate without a device",
                )
        alone = [_Want(column, (function,), ((function, column),)) for function, column in numbers]
        if not self._match(alone):
            by_column: dict[str | None, list[State]] = {}
            for state in numbers:
                by_column.setdefault(state[1], []).append(state)
            shared = [
                _Want(column, tuple(function for function, _ in states), tuple(states))
                for column, states in by_column.items()
            ]
            if not self._match(shared):
                self._refuse(numbers)
        shown = self._values.shown_counts
        counts = [state for state in self._values.states if state[0] == "count" and state != ROWS]
        for state in sorted(counts, key=lambda state: state not in shown):
            self._match([_Want(state[1], ("sum",), (state,))])
            if state in shown and state not in self._field_of:
                shown = shown | {ROWS}
        ones = _Want(None, ("sum",), (ROWS,))
        if ROWS in shown and self._count is None and not self._match([ones]):
            self._refuse([ROWS])

    def _match(self, wants: Iterable[_Want]) -> bool:
        """Give each of these a field of its own, or none of them any; return whether it worked.

        A matching of wants and fields, which grows along augmenting paths.
        """
        owners: dict[str, _Want] = {}
        taken = set(self._field_of.values())

        def place(want: _Want, tried: set[str]) -> bool:
            for name in sorted(self._fields, key=lambda name: name != want.column):
                fits = set(want.functions) <= self._reductions[name].keys()
                if not fits or name in taken or name in tried or not self._holds(want, name):
                    continue
                tried.add(name)
                if name not in owners or place(owners[name], tried):
                    owners[name] = want
                    return True
            return False

        if not all(place(want, set()) for want in wants):
            return False
        for name, want in owners.items():
            self._field_of.update(dict.fromkeys(want.states, name))
        return True

    def _holds(self, want: _Want, name: str) -> bool:
        """Return whether a field holds 1, if that is what it has to carry."""
        return want.states[0][0] != "count" or self._fields[name].range.high >= 1

    def _require_lanes(self, state: State) -> None:
        """Raise unless a null of the state's column can be left out."""
        column = str(state[1])
        shares = [at for at, name in self._field_of.items() if name == self._field_of[state]]
        if len(shares) > 1 or ("count", column) not in self._field_of:
            self._refuse_null(column)

    def _refuse_null(self, column: str) -> None:
        raise AcceleratorLimitError(
            f"Column {column!r} has a null, and operator {self._operator.name!r} of the "
            f"accelerator has no field for each of its reductions, and another one to count values",
            "leave out rows with nulls, generate an operator with a sum over one more field of 1 "
            "bit, or aggregate without a device",
        )

    def _refuse(self, states: Sequence[State]) -> None:
        needed = ", ".join(f"{function}({column or '*'})" for function, column in states)
        has = ", ".join(f"{one.function}({one.value})" for one in self._operator.reductions)
        raise AcceleratorLimitError(
            f"The query needs {needed}, but operator {self._operator.name!r} of the accelerator "
            f"computes {has}",
            "generate an accelerator for an operator with a field for each of them, or aggregate "
            "without a device",
        )


def _require_plain_results(operator: WindowedOperator) -> None:
    """Raise for an operator that gives something else than its reductions, of every window.

    An accelerator sends the reductions, and the query says what is computed of them, so nobody
    would compute the operator's outputs, or leave windows out.
    """
    shown = {str(one.name): (one.value.text, one.per) for one in operator.outputs or ()}
    own = []
    if shown != {one.name: (one.name, None) for one in operator.reductions}:
        texts = (
            f"{name} = {at}" + f" / {per}" * (per is not None) for name, (at, per) in shown.items()
        )
        own.append(f"`outputs` of its own ({', '.join(texts)})")
    if operator.having is not None:
        own.append(f"`having` ({operator.having})")
    if own:
        raise AcceleratorLimitError(
            f"Operator {operator.name!r} of the accelerator has {' and '.join(own)}, but a query "
            f"gets the aggregates that it names, of every window",
            "generate an accelerator for the operator without them, ask for a mean as an "
            "aggregate, and filter the result; or aggregate without a device",
        )


def _key_field(operator: WindowedOperator, *, keyed: bool) -> str | None:
    """Return the field that is an operator's key, if it has keys."""
    if not operator.keys and not keyed:
        return None
    parts = [part.text for key in operator.keys for part in key.parts]
    conditional = any(key.when is not None for key in operator.keys)
    names = {field.name for field in operator.fields}
    if len(parts) != 1 or parts[0] not in names or conditional:
        raise AcceleratorLimitError(
            f"The query's keys need an operator whose tuples have one field as their key, but that "
            f"of operator {operator.name!r} of the accelerator is {parts}",
            "generate an accelerator for such an operator, or aggregate without a device",
        )
    return parts[0]


def _neutral(function: str, field: Field) -> int:
    """Return what a null puts into a field, which changes no state that has a value."""
    return {"sum": 0, "min": field.range.high, "max": field.range.low}[function]


def _require_range(column: str, numbers: Array, field: Field) -> None:
    if not len(numbers):
        return
    low, high = int(numbers.min()), int(numbers.max())
    if low < field.range.low or high > field.range.high:
        raise KeyRangeError(
            column,
            low if low < field.range.low else high,
            field.range.low,
            field.range.high,
            remedy=f"use an accelerator with a wider field {field.name!r}",
        )
