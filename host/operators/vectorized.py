# SPDX-License-Identifier: Apache-2.0
"""Run an aggregate that is described as data on NumPy arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from host.errors import AggregateOverflowError, KeyRangeError, OperatorError, UnknownColumnError
from host.operators.expressions import evaluate
from host.operators.panes import COMBINES, Array, Cells, Combine, Int64s, cells_of, run_begins
from host.operators.windowed import TIME, Reduction, WindowedOperator

__all__ = [
    "AggregateArrays",
    "aggregate_arrays",
    "combine_of",
]

Columns: TypeAlias = Mapping[str, npt.ArrayLike]


@dataclass(frozen=True)
class AggregateArrays:
    """Results of an aggregate, in the order of (end, key).

    Parameters
    ----------
    start, end : array of int64
        Boundaries of the windows.
    keys : dict of str to array of int64
        Parts of the keys.
    values : dict of str to array
        Outputs: int64, or float64 for those with a divisor, which are NaN where it is 0.
    """

    start: Int64s
    end: Int64s
    keys: dict[str, Int64s]
    values: dict[str, Array]

    def __len__(self) -> int:
        """Return the number of results."""
        return len(self.end)


def aggregate_arrays(
    operator: WindowedOperator, timestamps: npt.ArrayLike, columns: Columns
) -> AggregateArrays:
    """Return the results of an aggregate on tuples, after which the stream ends.

    They may come in any order, unless the operator has a single window instance.

    Parameters
    ----------
    operator : WindowedOperator
        An aggregate.
    timestamps : array of int
        Times of the tuples.
    columns : mapping of str to array of int
        Fields of the tuples.

    Raises
    ------
    OperatorError
        If the operator is no aggregate, or tuples are out of order for a single window instance.
    UnknownColumnError, KeyRangeError
        If a field has no column, or a value does not fit its field.
    AggregateOverflowError
        If a sum does not fit its state when its window ends.
    """
    if operator.kind != "aggregate":
        raise OperatorError(
            f"Operator {operator.name!r} is a {operator.kind}; only aggregates run on arrays."
        )
    names = _fields(operator, timestamps, columns)
    _require_order(operator, names["timestamp"])
    rows, parts = _keys(operator, names, len(names["timestamp"]))
    code, distinct = _codes(parts, len(rows))
    combines = [combine_of(reduction) for reduction in operator.reductions]
    values = [_values(reduction, names, rows) for reduction in operator.reductions]
    pane = names["timestamp"][rows] // operator.pane
    return _results(operator, cells_of(code, pane, values, combines), combines, distinct)


def _require_order(operator: WindowedOperator, times: Int64s) -> None:
    """Raise for tuples out of order if there is a single window instance, as the reference does."""
    falls = np.flatnonzero(np.diff(times) < 0)
    if len(falls) and operator.instances == "single":
        at = int(falls[0])
        raise OperatorError(
            f"Tuple {at + 1} (the first is 0) has timestamp {times[at + 1]} after {times[at]}, but "
            f"operator {operator.name!r} has a single window instance, which takes tuples in the "
            f"order of their times: sort them, or use instances 'multi'."
        )


def combine_of(reduction: Reduction) -> Combine:
    """Return how arrays of a reduction's states are combined."""
    if reduction.function in COMBINES:
        return COMBINES[reduction.function]
    function = reduction.combine
    assert function is not None
    return lambda a, b: np.broadcast_to(evaluate(function, {"a": a, "b": b}), a.shape)


def _fields(
    operator: WindowedOperator, timestamps: npt.ArrayLike, columns: Columns
) -> dict[str, Int64s]:
    """Return the fields of the tuples as int64, checked."""
    fields = {field.name: field.range for field in operator.fields}
    names: dict[str, Int64s] = {}
    for name, field in {"timestamp": TIME, **fields}.items():
        if name != "timestamp" and name not in columns:
            raise UnknownColumnError(name, list(columns), table="the tuples")
        column = np.asarray(timestamps if name == "timestamp" else columns[name])
        if column.dtype.kind not in "iub" and len(column):
            raise OperatorError(
                f"Field {name!r} of operator {operator.name!r} holds integers, not {column.dtype}."
            )
        for edge in (column.min(), column.max()) if len(column) else ():
            if not field.low <= int(edge) <= field.high:
                raise KeyRangeError(
                    name, int(edge), field.low, field.high, remedy="give the field more bits"
                )
        names[name] = column.astype(np.int64, copy=False)
    return names


def _keys(
    operator: WindowedOperator, names: Mapping[str, Int64s], count: int
) -> tuple[Int64s, list[Int64s]]:
    """Return the rows of all keys of all tuples, each key of a tuple once, and the keys' parts."""
    if not operator.keys:
        return np.arange(count, dtype=np.int64), []
    chosen: list[Int64s] = []
    parts: list[list[Int64s]] = [[] for _ in operator.key_fields]
    for key in operator.keys:
        kept = np.ones(count, np.bool_)
        if key.when is not None:
            kept = _column(key.when, names, count) != 0
        chosen.append(np.flatnonzero(kept).astype(np.int64))
        for part, expression in zip(parts, key.parts, strict=True):
            part.append(_column(expression, names, count)[kept])
    rows = np.concatenate(chosen)
    joined = [np.concatenate(part) for part in parts]
    if len(operator.keys) > 1:
        order = np.lexsort((*joined, rows))
        ordered = [rows[order], *(part[order] for part in joined)]
        kept = run_begins(ordered)
        rows, joined = ordered[0][kept], [part[kept] for part in ordered[1:]]
    return rows, joined


def _codes(parts: Sequence[Int64s], count: int) -> tuple[Int64s, list[Int64s]]:
    """Return the code of each key, by the order of keys, and the parts of the distinct keys."""
    if not parts:
        return np.zeros(count, np.int64), []
    if len(parts) == 1:
        distinct, code = np.unique(parts[0], return_inverse=True)
        return code.astype(np.int64), [distinct]
    order = np.lexsort(tuple(reversed(parts)))
    ordered = [part[order] for part in parts]
    begins = run_begins(ordered)
    code = np.empty(count, np.int64)
    code[order] = np.cumsum(begins) - 1
    return code, [part[begins] for part in ordered]


def _values(reduction: Reduction, names: Mapping[str, Int64s], rows: Int64s) -> Array:
    assert reduction.value is not None
    values = _column(reduction.value, names, len(names["timestamp"]))[rows]
    if COMBINES.get(reduction.function) is np.add and len(values):
        most = max(abs(int(values.min())), abs(int(values.max())))
        if most * len(values) >= 1 << 63:
            return values.astype(object)  # the sum of all could wrap in 64 bits
    return values


def _results(
    operator: WindowedOperator,
    cells: Cells,
    combines: Sequence[Combine],
    distinct: Sequence[Int64s],
) -> AggregateArrays:
    found = cells.windows(
        operator.size // operator.pane, operator.advance // operator.pane, combines
    )
    start = found.window * operator.advance
    keys = {
        field.name: part[found.key]
        for field, part in zip(operator.key_fields, distinct, strict=True)
    }
    names: dict[str, Any] = {"start": start, "end": start + operator.size, **keys}
    for reduction, states in zip(operator.reductions, found.states, strict=True):
        _require_states(reduction, states, names, keys)
        names[reduction.name] = states.astype(np.int64, copy=False)
    kept = slice(None)
    if operator.having is not None:
        kept = _column(operator.having, names, len(start)) != 0
        names = {name: column[kept] for name, column in names.items()}
    count = len(names["start"])
    values = {}
    for output in operator.outputs or ():
        value = _column(output.value, names, count)
        values[output.name] = value
        if output.per is not None:
            divisor = _column(output.per, names, count)
            values[output.name] = np.divide(
                value, divisor, out=np.full(count, np.nan), where=divisor != 0
            )
    return AggregateArrays(
        names["start"], names["end"], {name: names[name] for name in keys}, values
    )


def _require_states(
    reduction: Reduction, states: Array, names: Mapping[str, Int64s], keys: Mapping[str, Int64s]
) -> None:
    low, high = reduction.range.low, reduction.range.high
    wrong = np.flatnonzero((states < low) | (states > high))
    if len(wrong):
        at = wrong[0]
        raise AggregateOverflowError(
            reduction.name, int(states[at]), low, high,
            window=(int(names["start"][at]), int(names["end"][at])),
            key=tuple(int(part[at]) for part in keys.values()),
        )  # fmt: skip


def _column(expression: Any, names: Mapping[str, Int64s], count: int) -> Int64s:
    """Return the values of an expression as an array, also if it is a number."""
    return np.broadcast_to(np.asarray(evaluate(expression, names), np.int64), count)
