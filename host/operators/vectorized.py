# SPDX-License-Identifier: Apache-2.0
"""Run operators that are described as data on NumPy arrays: the software engine of operators."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.errors import AggregateOverflowError, KeyRangeError, OperatorError, UnknownColumnError
from host.expressions import Expression, evaluate
from host.operators.panes import (
    COMBINES,
    Array,
    Cells,
    Combine,
    Int64s,
    WindowStates,
    cells_of,
    run_begins,
)
from host.operators.windowed import TIME, Reduction, WindowedOperator
from host.query.queries import Query

__all__ = [
    "ALL",
    "Entries",
    "FindPairs",
    "KeyedCells",
    "Names",
    "OperatorArrays",
    "Span",
    "aggregate_arrays",
    "combine_of",
    "entries",
    "fields_of",
    "forwarded",
    "joined",
    "key_codes",
    "keyed_cells",
    "merged_cells",
    "pair_query",
    "state_results",
    "window_results",
]

Columns: TypeAlias = Mapping[str, npt.ArrayLike]
#: What expressions read of tuples: their timestamps and fields, by name.
Names: TypeAlias = Mapping[str, Int64s]
#: Finds the pairs of rows of a left and a right table that a query joins, as their numbers.
FindPairs: TypeAlias = Callable[[pa.Table, pa.Table, Query], tuple[Int64s, Int64s]]
#: Numbers of tuples, one for each of their keys, and the parts of these keys.
Entries: TypeAlias = tuple[Int64s, Sequence[Int64s]]
Bools: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class OperatorArrays:
    """Results of an operator, in the order of (end, key).

    Results of one end and key come in the order in which the tuples that they are of have arrived.

    Parameters
    ----------
    start, end : array of int64
        Boundaries of the windows.
    keys : dict of str to array of int64
        Parts of the keys.
    values : dict of str to array
        The outputs of an aggregate: int64, or float64 for those with a divisor, which are NaN where
        it is 0. Those of matches also are masked where they are of nothing.
    rows : tuple of array of int64
        Numbers of the tuples that a result is of, one array for each input, -1 where none is; empty
        for an aggregate.
    """

    start: Int64s
    end: Int64s
    keys: dict[str, Int64s]
    values: dict[str, Array]
    rows: tuple[Int64s, ...] = ()

    def __len__(self) -> int:
        """Return the number of results."""
        return len(self.end)


@dataclass(frozen=True)
class Span:
    """Which part of the results is wanted: those that the watermark decides on its way.

    Parameters
    ----------
    since, until : int or None
        Watermark before, and now: all tuples below ``since`` have been decided, and those below
        ``until`` are to be. None: before the first tuple, and behind the last one.
    """

    since: int | None = None
    until: int | None = None

    def first_window(self, operator: WindowedOperator) -> int | None:
        """Return the number of the first window that has not ended before; None if none has."""
        return None if self.since is None else (self.since - operator.size) // operator.advance + 1

    def last_window(self, operator: WindowedOperator) -> int | None:
        """Return the number of the last window that has ended by now; None for the last of all."""
        return None if self.until is None else (self.until - operator.size) // operator.advance

    def holds(self, times: Int64s) -> Bools:
        """Return which tuples are decided now."""
        held = np.ones(len(times), np.bool_)
        if self.since is not None:
            held &= times >= self.since
        return held if self.until is None else held & (times < self.until)


#: All results.
ALL = Span()

# Tuples: their fields, checked, and their keys.


def fields_of(
    operator: WindowedOperator, timestamps: npt.ArrayLike, columns: Columns, side: int = 0
) -> dict[str, Int64s]:
    """Return what expressions read of the tuples of an input, checked.

    Raises
    ------
    OperatorError, UnknownColumnError, KeyRangeError
        If a field has no column, holds no integers, or a value does not fit its field.
    """
    fields = {field.name: field.range for field in operator.schemas[side]}
    names: dict[str, Int64s] = {}
    for name, limits in {"timestamp": TIME, **fields}.items():
        if name != "timestamp" and name not in columns:
            raise UnknownColumnError(name, list(columns), table="the tuples")
        column = np.asarray(timestamps if name == "timestamp" else columns[name])
        if column.dtype.kind not in "iub" and len(column):
            raise OperatorError(
                f"Field {name!r} of operator {operator.name!r} holds integers, not {column.dtype}."
            )
        for edge in (column.min(), column.max()) if len(column) else ():
            if not limits.low <= int(edge) <= limits.high:
                raise KeyRangeError(
                    name, int(edge), limits.low, limits.high, remedy="give the field more bits"
                )
        names[name] = column.astype(np.int64, copy=False)
    return names


def entries(operator: WindowedOperator, names: Names) -> Entries:
    """Return the rows of all keys of all tuples, each key of a tuple once, and the keys' parts.

    A join that stores in turns has each tuple once, for it is compared under all keys.
    """
    count = len(names["timestamp"])
    if not operator.keys or operator.in_turns:
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


def key_codes(parts: Sequence[Int64s], count: int) -> tuple[Int64s, list[Int64s]]:
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


# Aggregates: cells of tuples, windows of cells, and what a window gives.


@dataclass(frozen=True)
class KeyedCells:
    """States of keys in panes, and the parts of the keys that cells know by number.

    Parameters
    ----------
    cells : Cells
    parts : sequence of array of int64
        Each part of the distinct keys, which are sorted.
    """

    cells: Cells
    parts: Sequence[Int64s]


def aggregate_arrays(
    operator: WindowedOperator, timestamps: npt.ArrayLike, columns: Columns
) -> OperatorArrays:
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
            f"Operator {operator.name!r} is a {operator.kind}; only aggregates run on arrays: run "
            f"others on tables, with host.operate."
        )
    names = fields_of(operator, timestamps, columns)
    _require_order(operator, names["timestamp"])
    return window_results(operator, keyed_cells(operator, names))[0]


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


def keyed_cells(operator: WindowedOperator, names: Names) -> KeyedCells:
    """Return the states of the keys of tuples in each pane."""
    rows, parts = entries(operator, names)
    code, distinct = key_codes(parts, len(rows))
    combines = [combine_of(reduction) for reduction in operator.reductions]
    values = [_values(reduction, names, rows) for reduction in operator.reductions]
    pane = names["timestamp"][rows] // operator.pane
    return KeyedCells(cells_of(code, pane, values, combines), distinct)


def merged_cells(
    operator: WindowedOperator, parts: Sequence[Int64s], panes: Int64s, states: Sequence[Array]
) -> KeyedCells:
    """Return the cells of all tuples from those of some of them.

    Parameters
    ----------
    parts : sequence of array of int64
        Each part of the keys.
    panes : array of int64
        Number of the pane.
    states : sequence of array
        States of the reductions.
    """
    code, distinct = key_codes(parts, len(panes))
    values = [
        _wide_enough(one, state) for one, state in zip(operator.reductions, states, strict=True)
    ]
    combines = [combine_of(one) for one in operator.reductions]
    return KeyedCells(cells_of(code, panes, values, combines), distinct)


def _values(reduction: Reduction, names: Names, rows: Int64s) -> Array:
    """Return what the tuples of entries contribute to a reduction."""
    assert reduction.value is not None
    values = _column(reduction.value, names, len(names["timestamp"]))[rows]
    return _wide_enough(reduction, values)


def _contributed(reduction: Reduction, names: Names, count: int) -> Array:
    """Return what matches contribute to a reduction."""
    assert reduction.value is not None
    return _wide_enough(reduction, _column(reduction.value, names, count))


def _wide_enough(reduction: Reduction, values: Array) -> Array:
    """Return values in a type that holds the sum of all of them, if they are added up."""
    if COMBINES.get(reduction.function) is np.add and len(values):
        most = max(abs(int(values.min())), abs(int(values.max())))
        if most * len(values) >= 1 << 63:
            return values.astype(object)  # the sum of all could wrap in 64 bits
    return values


def window_results(
    operator: WindowedOperator, keyed: KeyedCells, span: Span = ALL
) -> tuple[OperatorArrays, Cells]:
    """Return the results of windows over cells, and the cells that windows to come still need.

    Parameters
    ----------
    operator : WindowedOperator
        An aggregate.
    keyed : KeyedCells
        All cells of the windows; those of windows that have ended before are left out.
    span : Span
        Which windows; by default all that hold a tuple.
    """
    combines = [combine_of(reduction) for reduction in operator.reductions]
    first, last = span.first_window(operator), span.last_window(operator)
    if operator.slide is not None:
        found, kept = _slid(operator, keyed, first, last)
    else:
        length, advance = operator.size // operator.pane, operator.advance // operator.pane
        found = keyed.cells.windows(length, advance, combines, first=first, last=last)
        reached = last if last is not None and (first is None or last >= first) else first
        behind = None if reached is None else reached + (reached == last)
        kept = keyed.cells if behind is None else keyed.cells.after(behind * advance)
    return state_results(operator, found, keyed.parts), kept


def _window_names(
    operator: WindowedOperator,
    window: Int64s,
    key: Int64s,
    states: Sequence[Array],
    parts: Sequence[Int64s],
) -> dict[str, Int64s]:
    """Return what outputs, ``having`` and ``slide`` read of windows, whose states are checked."""
    start = window * operator.advance
    keys = {field.name: part[key] for field, part in zip(operator.key_fields, parts, strict=True)}
    names: dict[str, Int64s] = {"start": start, "end": start + operator.size, **keys}
    for reduction, values in zip(operator.reductions, states, strict=True):
        _require_states(reduction, values, names, keys)
        names[reduction.name] = values.astype(np.int64, copy=False)
    return names


def state_results(
    operator: WindowedOperator, found: WindowStates, parts: Sequence[Int64s]
) -> OperatorArrays:
    """Return what windows give, from their states and the parts of the distinct keys."""
    names = _window_names(operator, found.window, found.key, found.states, parts)
    if operator.having is not None:
        kept = _column(operator.having, names, len(found.window)) != 0
        names = {name: column[kept] for name, column in names.items()}
    keys = {name: names[name] for name in operator.key_names or ()}
    return OperatorArrays(names["start"], names["end"], keys, _outputs(operator, names))


def _outputs(
    operator: WindowedOperator, names: Names, absent: Mapping[str, Bools] | None = None
) -> dict[str, Array]:
    """Return the values of results; ``absent`` says where a state is one of nothing."""
    count = len(names["start"])
    values: dict[str, Array] = {}
    for output in operator.outputs or ():
        value: Array = _column(output.value, names, count)
        read = set(output.value.names)
        if output.per is not None:
            divisor = _column(output.per, names, count)
            value = np.divide(value, divisor, out=np.full(count, np.nan), where=divisor != 0)
            read |= set(output.per.names)
        if absent is not None:
            value = np.ma.MaskedArray(value, _any_of(absent, read, count))
        values[output.name] = value
    return values


def _any_of(absent: Mapping[str, Bools], names: set[str], count: int) -> Bools:
    """Return where one of the states that are read is one of nothing."""
    found = np.zeros(count, np.bool_)
    for name in names & absent.keys():
        found |= absent[name]
    return found


#: Most (key, window) pairs for which ``slide`` is evaluated at a time.
_BLOCK = 1 << 16


def _slid(
    operator: WindowedOperator, keyed: KeyedCells, first: int | None, last: int | None
) -> tuple[WindowStates, Cells]:
    """Return the windows of single instances whose states ``slide`` keeps or drops.

    The state of a key has all tuples before the end of a window, from the first one that came after
    it was dropped. Between two panes with tuples, states only drop, so many windows are evaluated
    at once.

    A state that is kept stands, in the cells that are returned, in the pane behind the last window.
    """
    cells, combines = keyed.cells, [combine_of(one) for one in operator.reductions]
    order = np.argsort(cells.pane, kind="stable")
    key, time = cells.key[order], cells.pane[order] * operator.pane
    columns = [states[order] for states in cells.states]
    if first is not None:  # a cell of windows that have all given their results is late
        begin = int(np.searchsorted(time, (first - 1) * operator.advance + operator.size))
        key, time, columns = key[begin:], time[begin:], [column[begin:] for column in columns]
    keys = int(key.max()) + 1 if len(key) else 0
    held, states = np.zeros(keys, np.bool_), [np.zeros(keys, c.dtype) for c in columns]
    none = np.zeros(0, np.int64)
    found: list[tuple[Int64s, Int64s, list[Array]]] = [(none, none, [c[:0] for c in columns])]
    limit = (int(time[-1]) // operator.advance if len(time) else 0) if last is None else last
    at, window = 0, 0
    while held.any() or at < len(time):
        if not held.any():
            window = (int(time[at]) - operator.size) // operator.advance + 1
        if window > limit:
            break
        end = int(np.searchsorted(time, window * operator.advance + operator.size))
        _take_in(held, states, cells_of(
            key[at:end], np.zeros(end - at, np.int64), [c[at:end] for c in columns], combines
        ), combines)  # fmt: skip
        at = end
        quiet = limit
        if at < len(time):
            quiet = min(limit, (int(time[at]) - operator.size) // operator.advance)
        chosen = np.flatnonzero(held)
        count = max(1, min(quiet - window + 1, _BLOCK // max(1, len(chosen))))
        windows = np.arange(window, window + count)
        block = _block(operator, keyed.parts, chosen, windows, [s[chosen] for s in states])
        found.append(block[:3])
        held[chosen] = block[3]
        window += count
    rest = key[at:], time[at:], [column[at:] for column in columns]
    windows, codes = (np.concatenate([one[place] for one in found]) for place in (0, 1))
    by = np.lexsort((codes, windows))
    results = tuple(
        np.concatenate(column)[by] for column in zip(*(one[2] for one in found), strict=True)
    )
    kept = _kept_states(operator, held, states, limit, rest)
    return WindowStates(windows[by], codes[by], results), kept


def _take_in(held: Bools, states: Sequence[Array], new: Cells, combines: Sequence[Combine]) -> None:
    """Combine cells, one for each key, with the states that are held."""
    before = held[new.key]
    for state, values, combine in zip(states, new.states, combines, strict=True):
        state[new.key] = np.where(before, combine(state[new.key], values), values)
    held[new.key] = True


def _block(
    operator: WindowedOperator,
    parts: Sequence[Int64s],
    chosen: Int64s,
    windows: Int64s,
    states: Sequence[Array],
) -> tuple[Int64s, Int64s, list[Array], Bools]:
    """Return (window, key, states) of windows that give a result, and which keys stay held."""
    assert operator.slide is not None
    shape = len(chosen), len(windows)
    key, window = np.repeat(chosen, shape[1]), np.tile(windows, shape[0])
    columns = [np.repeat(state, shape[1]) for state in states]
    names = _window_names(operator, window, key, columns, parts)
    keeps = (_column(operator.slide, names, len(key)) != 0).reshape(shape)
    held = np.ones(shape, np.bool_)
    held[:, 1:] = np.logical_and.accumulate(keeps, axis=1)[:, :-1]
    stays: Bools = held[:, -1] & keeps[:, -1]
    gives: Bools = held.reshape(-1)
    if operator.having is not None:
        gives &= _column(operator.having, names, len(key)) != 0
    return window[gives], key[gives], [column[gives] for column in columns], stays


def _kept_states(
    operator: WindowedOperator,
    held: Bools,
    states: Sequence[Array],
    limit: int,
    rest: tuple[Int64s, Int64s, list[Array]],
) -> Cells:
    """Return the states that are held behind window ``limit``, and the cells that are to come."""
    keys = np.flatnonzero(held)
    behind = (limit * operator.advance + operator.size) // operator.pane
    key = np.concatenate([keys, rest[0]])
    pane = np.concatenate([np.full(len(keys), behind), rest[1] // operator.pane])
    columns = [np.concatenate([s[keys], c]) for s, c in zip(states, rest[2], strict=True)]
    return cells_of(key, pane, columns, [combine_of(one) for one in operator.reductions])


def _require_states(reduction: Reduction, states: Array, names: Names, keys: Names) -> None:
    low, high = reduction.range.low, reduction.range.high
    wrong = np.flatnonzero((states < low) | (states > high))
    if len(wrong):
        at = wrong[0]
        raise AggregateOverflowError(
            reduction.name, int(states[at]), low, high,
            window=(int(names["start"][at]), int(names["end"][at])),
            key=tuple(int(part[at]) for part in keys.values()),
        )  # fmt: skip


def _column(expression: Expression, names: Names, count: int) -> Int64s:
    """Return the values of an expression as an array, also if it is a number."""
    return np.broadcast_to(np.asarray(evaluate(expression, names), np.int64), count)


# Forwards and joins: results of tuples when they arrive.


def _earliest_end(operator: WindowedOperator, times: Int64s) -> Int64s:
    """Return the right boundary of the earliest window that each time falls in."""
    return ((times - operator.size) // operator.advance + 1) * operator.advance + operator.size


def forwarded(
    operator: WindowedOperator, inputs: Sequence[Names], found: Sequence[Entries]
) -> OperatorArrays:
    """Return each tuple of the inputs, once for each of its keys.

    Parameters
    ----------
    operator : WindowedOperator
        A forward.
    inputs : sequence of Names
        All tuples of each input.
    found : sequence of Entries
        For each input, tuples and their keys.
    """
    times = np.concatenate(
        [names["timestamp"][rows] for names, (rows, _) in zip(inputs, found, strict=True)]
    )
    side = np.repeat(np.arange(len(inputs)), [len(rows) for rows, _ in found])
    row = np.concatenate([rows for rows, _ in found])
    parts = _each_part(found)
    end = _earliest_end(operator, times)
    order = np.lexsort((row, side, times, *reversed(parts), end))
    rows = tuple(np.where(side == at, row, -1)[order] for at in range(len(inputs)))
    return OperatorArrays(
        (end - operator.size)[order], end[order], _named_keys(operator, parts, order), {}, rows
    )


def _each_part(found: Sequence[Entries]) -> list[Int64s]:
    """Return each part of the keys of all inputs."""
    return [np.concatenate(part) for part in zip(*(parts for _, parts in found), strict=True)]


def _named_keys(
    operator: WindowedOperator, parts: Sequence[Int64s], order: Int64s
) -> dict[str, Int64s]:
    return {name: part[order] for name, part in zip(operator.key_names or (), parts, strict=True)}


def pair_query(operator: WindowedOperator) -> Query:
    """Return the query whose pairs hold all that an operator may match.

    Its tables have a row for each key of each tuple, with the columns ``timestamp``, the number of
    the key, if there are any, and the compared fields.
    """
    keyed = bool(operator.keys) and not operator.in_turns
    return Query(
        time="timestamp",
        within=operator.size - 1,
        band=list(operator.terms) or None,
        on=_KEY if keyed else None,
    )


#: Column of the number of a key; no field has a blank in its name.
_KEY = "number of the key"


def joined(
    operator: WindowedOperator,
    inputs: Sequence[Names],
    found: Sequence[Entries],
    find: FindPairs,
    span: Span = ALL,
    before: int = 0,
) -> OperatorArrays:
    """Return the results of a join, or of an aggregate of matches.

    Parameters
    ----------
    operator : WindowedOperator
    inputs : sequence of Names
        All tuples of both inputs that are needed.
    found : sequence of Entries
        For each input, tuples and their keys.
    find : callable
        Finds pairs; what it finds beside those that match is left out.
    span : Span
        Which of the later tuples of pairs give a result.
    before : int
        Tuples that have arrived before all of these, for a join that stores in turns.
    """
    rows = [own for own, _ in found]
    code, distinct = key_codes(_each_part(found), sum(map(len, rows)))
    codes = code[: len(rows[0])], code[len(rows[0]) :]
    query = pair_query(operator)
    tables = []
    for side, (names, own, number) in enumerate(zip(inputs, rows, codes, strict=True)):
        compared = [(left, right)[side] for left, right, _, _ in operator.terms]
        columns = {name: names[name][own] for name in compared}
        columns["timestamp"] = names["timestamp"][own]
        columns[_KEY] = number
        tables.append(pa.table(columns))
    left, right = find(tables[0], tables[1], query)
    pairs = (rows[0][left], rows[1][right]), codes[0][left]
    kept = _matching(operator, inputs, pairs[0])
    if operator.reductions:
        matches = left[kept], pairs[0][1][kept]
        lefts = _reduced(operator, inputs, (rows[0], codes[0]), matches, span)
        return _of_lefts(operator, inputs, lefts, distinct)
    pair = pairs[0][0][kept], pairs[0][1][kept]
    return _of_pairs(operator, inputs, pair, pairs[1][kept], distinct, span, before)


def _matching(
    operator: WindowedOperator, inputs: Sequence[Names], pairs: tuple[Int64s, Int64s]
) -> Bools:
    """Return which pairs share a window and match."""
    assert operator.match is not None
    times = [names["timestamp"][row] for names, row in zip(inputs, pairs, strict=True)]
    later, earlier = np.maximum(*times), np.minimum(*times)
    shares: Bools = earlier >= _earliest_end(operator, later) - operator.size
    names = {
        f"{letter}.{name}": column[row]
        for letter, side, row in zip("lr", inputs, pairs, strict=True)
        for name, column in side.items()
        if f"{letter}.{name}" in operator.match.names
    }
    return shares & (_column(operator.match, names, len(later)) != 0)


def _arrivals(inputs: Sequence[Names]) -> list[Int64s]:
    """Return the place of each tuple in the order of arrival: by time, and left tuples first."""
    times = np.concatenate([names["timestamp"] for names in inputs])
    place = np.empty(len(times), np.int64)
    place[np.argsort(times, kind="stable")] = np.arange(len(times))
    first = len(inputs[0]["timestamp"])
    return [place[:first], place[first:]]


def _of_pairs(
    operator: WindowedOperator,
    inputs: Sequence[Names],
    pairs: tuple[Int64s, Int64s],
    code: Int64s,
    distinct: Sequence[Int64s],
    span: Span,
    before: int,
) -> OperatorArrays:
    places = [place[row] for place, row in zip(_arrivals(inputs), pairs, strict=True)]
    times = [names["timestamp"][row] for names, row in zip(inputs, pairs, strict=True)]
    later, earlier = np.maximum(*places), np.minimum(*places)
    arrived = np.maximum(*times)
    parts = [part[code] for part in distinct]
    if operator.in_turns:
        turns = list(dict.fromkeys(tuple(_number(p) for p in key.parts) for key in operator.keys))
        turn = (before + earlier) % len(turns)
        parts = [np.array(column, np.int64)[turn] for column in zip(*turns, strict=True)]
    end = _earliest_end(operator, arrived)
    order = np.lexsort((earlier, later, *reversed(parts), end))
    order = order[span.holds(arrived)[order]]
    rows = pairs[0][order], pairs[1][order]
    start = end[order] - operator.size
    return OperatorArrays(start, end[order], _named_keys(operator, parts, order), {}, rows)


def _number(part: Expression) -> int:
    """Return the value of a part of a key that all tuples have."""
    return int(evaluate(part, {}))


@dataclass(frozen=True)
class _Lefts:
    """Left tuples under their keys, and the states of their matches.

    Parameters
    ----------
    row, code : array of int64
        Numbers of the tuple and of the key.
    states : list of array
    absent : dict of str to array of bool
        Where a state is one of nothing, by the name of the reduction.
    """

    row: Int64s
    code: Int64s
    states: list[Array] = field(default_factory=list)
    absent: dict[str, Bools] = field(default_factory=dict)


def _reduced(
    operator: WindowedOperator,
    inputs: Sequence[Names],
    lefts: tuple[Int64s, Int64s],
    pairs: tuple[Int64s, Int64s],
    span: Span,
) -> _Lefts:
    """Return the left entries that are decided, with the reductions of what they match.

    Parameters
    ----------
    lefts : tuple of array
        Row and number of the key of each left entry.
    pairs : tuple of array
        Left entry and right row of each pair that matches.
    """
    rows, codes = lefts
    entry, right = pairs
    # Of tuples with one time, the left one has arrived first, and meets no right one.
    came = inputs[1]["timestamp"][right] < inputs[0]["timestamp"][rows[entry]]
    entry, right = entry[came], right[came]
    names = {
        f"{letter}.{name}": column[row]
        for letter, side, row in zip("lr", inputs, (rows[entry], right), strict=True)
        for name, column in side.items()
    }
    combines = [combine_of(one) for one in operator.reductions]
    values = [_contributed(one, names, len(entry)) for one in operator.reductions]
    cells = cells_of(entry, np.zeros(len(entry), np.int64), values, combines)
    nothing = np.ones(len(rows), np.bool_)
    nothing[cells.key] = False
    chosen = np.flatnonzero(span.holds(inputs[0]["timestamp"][rows]))
    states, absent = [], {}
    for one, found in zip(operator.reductions, cells.states, strict=True):
        state = np.zeros(len(rows), found.dtype)
        state[cells.key] = found
        if one.function not in ("count", "sum"):
            absent[one.name] = nothing[chosen]
            state[nothing] = one.range.low  # masked in results
        states.append(state[chosen])
    return _Lefts(rows[chosen], codes[chosen], states, absent)


def _of_lefts(
    operator: WindowedOperator, inputs: Sequence[Names], lefts: _Lefts, distinct: Sequence[Int64s]
) -> OperatorArrays:
    end = _earliest_end(operator, inputs[0]["timestamp"][lefts.row])
    window = (end - operator.size) // operator.advance
    names = _window_names(operator, window, lefts.code, lefts.states, distinct)
    kept = np.ones(len(end), np.bool_)
    if operator.having is not None:
        of_nothing = _any_of(lefts.absent, set(operator.having.names), len(end))
        kept = (_column(operator.having, names, len(end)) != 0) & ~of_nothing
    parts = [names[name] for name in operator.key_names or ()]
    place = _arrivals(inputs)[0][lefts.row]
    order = np.lexsort((place, *reversed(parts), end))
    order = order[kept[order]]
    names = {name: column[order] for name, column in names.items()}
    absent = {name: column[order] for name, column in lefts.absent.items()}
    keys = _named_keys(operator, parts, order)
    values = _outputs(operator, names, absent)
    rows = lefts.row[order], np.full(len(order), -1, np.int64)
    return OperatorArrays(names["start"], names["end"], keys, values, rows)
