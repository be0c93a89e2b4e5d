# SPDX-License-Identifier: Apache-2.0
"""Run operators that are described as data on NumPy arrays: the software engine of operators."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from host.arrays import Array, Bools, Int64s, inverse
from host.columns.windows import Windows
from host.errors import AcceleratorLimitError
from host.expressions import Expression, evaluate
from host.operators.aggregate import HostWindows
from host.operators.panes import COMBINES, Cells, Combine, WindowStates, cells_of, run_begins
from host.operators.states import ExactSums
from host.operators.windowed import TIME, Reduction, WindowedOperator, state_overflow
from host.query.queries import Query

__all__ = [
    "ALL",
    "Entries",
    "FindPairs",
    "Names",
    "OperatorArrays",
    "Span",
    "combine_of",
    "contributions",
    "entries",
    "fields_of",
    "forwarded",
    "forwarded_fields",
    "joined",
    "key_codes",
    "state_results",
    "windows_of",
]

#: What expressions read of tuples: their timestamps and fields, by name.
Names: TypeAlias = Mapping[str, Int64s]
#: Finds the pairs of rows of a left and a right table that a query joins, as their numbers.
FindPairs: TypeAlias = Callable[[pa.Table, pa.Table, Query], tuple[Int64s, Int64s]]
#: From numbers of keys to the parts of these keys.
PartsOf: TypeAlias = Callable[[Int64s], Sequence[Int64s]]
#: Numbers of tuples, one for each of their keys, and the parts of these keys.
Entries: TypeAlias = tuple[Int64s, Sequence[Int64s]]


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
    values : list of array
        The other columns of a result, in their order: fields of its tuples, masked where its tuple
        has none, and outputs. These are int64, or float64 with a divisor, and then NaN where it is
        0. Those of matches also are masked where they are of nothing.
    """

    start: Int64s
    end: Int64s
    keys: dict[str, Int64s]
    values: list[Array]

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
    operator: WindowedOperator, times: Int64s, columns: Mapping[str, Array], side: int
) -> dict[str, Int64s]:
    """Return what expressions read of the tuples of an input, checked.

    Raises
    ------
    AcceleratorLimitError
        If a value does not fit its field.
    """
    names: dict[str, Int64s] = {}
    limits = {"timestamp": TIME} | {field.name: field.range for field in operator.schemas[side]}
    for name, column in {"timestamp": times, **columns}.items():
        low, high = limits[name].low, limits[name].high
        for edge in (column.min(), column.max()) if len(column) else ():
            if not low <= int(edge) <= high:
                raise AcceleratorLimitError.out_of_range(
                    name, int(edge), low, high, remedy="give the field more bits"
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


# Aggregates: what tuples contribute, and what a window gives.


def combine_of(reduction: Reduction) -> Combine:
    """Return how arrays of a reduction's states are combined."""
    if reduction.function in COMBINES:
        return COMBINES[reduction.function]
    function = reduction.combine
    assert function is not None
    return lambda a, b: np.broadcast_to(evaluate(function, {"a": a, "b": b}), a.shape)


def contributions(
    operator: WindowedOperator, names: Names, rows: Int64s, sums: ExactSums, count: int
) -> list[Array]:
    """Return what tuples, or matches, contribute to each reduction.

    Parameters
    ----------
    names : Names
        What expressions read.
    rows : array of int64
        Which tuples, each once for each of its keys.
    sums : ExactSums
        Of all tuples so far.
    count : int
        How many have been reduced, with these.
    """
    found = []
    for one in operator.reductions:
        assert one.value is not None
        values = _column(one.value, names, len(next(iter(names.values()))))[rows]
        adds = COMBINES.get(one.function) is np.add
        found.append(sums.of(one.name, values, count) if adds else values)
    return found


def _window_names(
    operator: WindowedOperator, window: Int64s, parts: Sequence[Int64s], states: Sequence[Array]
) -> dict[str, Int64s]:
    """Return what outputs, ``having`` and ``slide`` read of windows, whose states are checked."""
    start = window * operator.advance
    keys = dict(zip(operator.key_names or (), parts, strict=True))
    names: dict[str, Int64s] = {"start": start, "end": start + operator.size, **keys}
    for reduction, values in zip(operator.reductions, states, strict=True):
        _require_states(reduction, values, names, keys)
        names[reduction.name] = values.astype(np.int64, copy=False)
    return names


def state_results(
    operator: WindowedOperator, found: WindowStates, parts_of: PartsOf
) -> OperatorArrays:
    """Return what windows give, from their states and the parts of their keys."""
    names = _window_names(operator, found.window, parts_of(found.key), found.states)
    if operator.having is not None:
        kept = _column(operator.having, names, len(found.window)) != 0
        names = {name: column[kept] for name, column in names.items()}
    keys = {name: names[name] for name in operator.key_names or ()}
    return OperatorArrays(names["start"], names["end"], keys, _outputs(operator, names))


def _outputs(
    operator: WindowedOperator, names: Names, absent: Mapping[str, Bools] | None = None
) -> list[Array]:
    """Return the values of results; ``absent`` says where a state is one of nothing."""
    count = len(names["start"])
    values: list[Array] = []
    for output in operator.outputs or ():
        value: Array = _column(output.value, names, count)
        read = set(output.value.names)
        if output.per is not None:
            divisor = _column(output.per, names, count)
            value = np.divide(value, divisor, out=np.full(count, np.nan), where=divisor != 0)
            read |= set(output.per.names)
        if absent is not None:
            value = np.ma.MaskedArray(value, _any_of(absent, read, count))
        values.append(value)
    return values


def _any_of(absent: Mapping[str, Bools], names: set[str], count: int) -> Bools:
    """Return where one of the states that are read is one of nothing."""
    found = np.zeros(count, np.bool_)
    for name in names & absent.keys():
        found |= absent[name]
    return found


#: Most (key, window) pairs for which ``slide`` is evaluated at a time.
_BLOCK = 1 << 16


class SlidWindows(HostWindows):
    """Windows of single instances whose states ``slide`` keeps or drops.

    The state of a key has all tuples before the end of a window, from the first one that came after
    it was dropped. Between two panes with tuples, states only drop, so many windows are evaluated
    at once. A state that is kept stands in the pane behind the last window that has ended.

    Parameters
    ----------
    operator : WindowedOperator
        With ``slide``.
    windows : Windows
        Its windows, in whatever unit.
    parts_of : callable
        Returns the parts of keys by their numbers.
    """

    def __init__(self, operator: WindowedOperator, windows: Windows, parts_of: PartsOf) -> None:
        super().__init__(windows, [combine_of(one) for one in operator.reductions])
        self.operator, self.parts_of = operator, parts_of

    def floor(self, last: int) -> int:
        """See :meth:`OpenWindows.floor`."""
        return last * self.advance + self.length

    def ended(self, ranks: Int64s, first: int | None, last: int | None) -> WindowStates:
        """See :meth:`OpenWindows.ended`."""
        del first  # what has ended has left
        order = np.argsort(self.cells.pane, kind="stable")
        key, pane = self.cells.key[order], self.cells.pane[order]
        columns = [states[order] for states in self.cells.states]
        held = np.zeros(len(ranks), np.bool_)
        states = [np.zeros(len(ranks), column.dtype) for column in columns]
        found = [WindowStates(key[:0], key[:0], tuple(column[:0] for column in columns))]
        limit = (int(pane[-1]) // self.advance if len(pane) else 0) if last is None else last
        at = window = 0
        while held.any() or at < len(pane):
            if not held.any():
                window = (int(pane[at]) - self.length) // self.advance + 1
            if window > limit:
                break
            end = int(np.searchsorted(pane, window * self.advance + self.length))
            none, came = np.zeros(end - at, np.int64), [column[at:end] for column in columns]
            new = cells_of(key[at:end], none, came, self.combines)
            before = held[new.key]
            for state, values, combine in zip(states, new.states, self.combines, strict=True):
                state[new.key] = np.where(before, combine(state[new.key], values), values)
            held[new.key] = True
            at, quiet = end, limit
            if at < len(pane):
                quiet = min(limit, (int(pane[at]) - self.length) // self.advance)
            count = max(1, min(quiet - window + 1, _BLOCK // int(held.sum())))
            found.append(self._block(held, states, np.arange(window, window + count)))
            window += count
        keys = np.flatnonzero(held)
        if last is None:
            self.cells = Cells.none(len(self.combines))
        else:
            kept = np.full(len(keys), self.floor(last))
            self.cells = cells_of(
                np.concatenate([keys, key[at:]]),
                np.concatenate([kept, pane[at:]]),
                [np.concatenate([s[keys], c[at:]]) for s, c in zip(states, columns, strict=True)],
                self.combines,
            )
        windows = np.concatenate([one.window for one in found])
        codes = np.concatenate([one.key for one in found])
        by = np.lexsort((ranks[codes], windows))
        given = zip(*(one.states for one in found), strict=True)
        return WindowStates(
            windows[by], codes[by], tuple(np.concatenate(column)[by] for column in given)
        )

    def _block(self, held: Bools, states: Sequence[Array], windows: Int64s) -> WindowStates:
        """Return the states that these windows give, and forget those that ``slide`` drops."""
        assert self.operator.slide is not None
        chosen, count = np.flatnonzero(held), len(windows)
        key, window = np.repeat(chosen, count), np.tile(windows, len(chosen))
        columns = [np.repeat(state[chosen], count) for state in states]
        names = _window_names(self.operator, window, self.parts_of(key), columns)
        keeps = _column(self.operator.slide, names, len(key)) != 0
        stays = np.logical_and.accumulate(keeps.reshape(-1, count), axis=1)
        held[chosen] = stays[:, -1]
        gives = np.roll(stays, 1, axis=1)
        gives[:, 0] = True
        given = gives.reshape(-1)
        return WindowStates(window[given], key[given], tuple(at[given] for at in columns))


def windows_of(operator: WindowedOperator, windows: Windows, parts_of: PartsOf) -> HostWindows:
    """Return what keeps the windows of an aggregate; see :class:`SlidWindows`."""
    if operator.slide is not None:
        return SlidWindows(operator, windows, parts_of)
    return HostWindows(windows, [combine_of(one) for one in operator.reductions])


def _require_states(reduction: Reduction, states: Array, names: Names, keys: Names) -> None:
    low, high = reduction.range.low, reduction.range.high
    wrong = np.flatnonzero((states < low) | (states > high))
    if len(wrong):
        at = wrong[0]
        raise state_overflow(
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


def forwarded_fields(operator: WindowedOperator) -> list[str]:
    """Return the fields of both inputs, each once."""
    return list(dict.fromkeys(one.name for schema in operator.schemas for one in schema))


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
    parts = _each_part([parts for _, parts in found])
    end = _earliest_end(operator, times)
    order = np.lexsort((row, side, times, *reversed(parts), end))
    values: list[Array] = []
    for name in forwarded_fields(operator):
        columns = [
            names[name][rows] if name in names else np.zeros(len(rows), np.int64)
            for names, (rows, _) in zip(inputs, found, strict=True)
        ]
        absent = np.array([name not in names for names in inputs])[side]
        values.append(np.ma.MaskedArray(np.concatenate(columns), absent)[order])
    values += [side[order]] * (len(inputs) - 1)
    return OperatorArrays(
        (end - operator.size)[order], end[order], _named_keys(operator, parts, order), values
    )


def _each_part(keys: Sequence[Sequence[Int64s]]) -> list[Int64s]:
    """Return each part of the keys of all inputs."""
    return [np.concatenate(part) for part in zip(*keys, strict=True)]


def _named_keys(
    operator: WindowedOperator, parts: Sequence[Int64s], order: Int64s
) -> dict[str, Int64s]:
    return {name: part[order] for name, part in zip(operator.key_names or (), parts, strict=True)}


#: Column of the number of a key; no field has a blank in its name.
_KEY = "number of the key"


def joined(
    operator: WindowedOperator,
    inputs: Sequence[Names],
    keys: Sequence[Sequence[Int64s]],
    find: FindPairs,
    span: Span = ALL,
    before: int = 0,
) -> OperatorArrays:
    """Return the results of a join, or of an aggregate of matches.

    Parameters
    ----------
    operator : WindowedOperator
    inputs : sequence of Names
        All tuples of both inputs that are needed, once for each of their keys.
    keys : sequence of sequence of array of int64
        For each input, the parts of these keys.
    find : callable
        Finds pairs; what it finds beside those that match is left out.
    span : Span
        Which of the later tuples of pairs give a result.
    before : int
        Tuples that have arrived before all of these, for a join that stores in turns.
    """
    counts = [len(names["timestamp"]) for names in inputs]
    code, distinct = key_codes(_each_part(keys), sum(counts))
    codes = np.split(code, counts[:1])
    query = Query(
        time="timestamp",
        within=operator.size - 1,
        band=list(operator.terms) or None,
        on=_KEY if operator.keys and not operator.in_turns else None,
    )
    # A row for each key of each tuple, and with it the compared fields.
    tables = []
    for side, (names, number) in enumerate(zip(inputs, codes, strict=True)):
        compared = [(left, right)[side] for left, right, _, _ in operator.terms]
        columns = {name: names[name] for name in [*compared, "timestamp"]}
        tables.append(pa.table({**columns, _KEY: number}))
    left, right = find(tables[0], tables[1], query)
    kept = _matching(operator, inputs, (left, right))
    pairs = left[kept], right[kept]
    if operator.reductions:
        return _of_lefts(operator, inputs, codes[0], pairs, distinct, span)
    return _of_pairs(operator, inputs, pairs, codes[0][pairs[0]], distinct, span, before)


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
    place = inverse(np.argsort(times, kind="stable"))
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
    start = end[order] - operator.size
    values = [
        names[one.name][row[order]]
        for names, row, schema in zip(inputs, pairs, operator.schemas, strict=True)
        for one in schema
    ]
    return OperatorArrays(start, end[order], _named_keys(operator, parts, order), values)


def _number(part: Expression) -> int:
    """Return the value of a part of a key that all tuples have."""
    return int(evaluate(part, {}))


def _of_lefts(
    operator: WindowedOperator,
    inputs: Sequence[Names],
    codes: Int64s,
    pairs: tuple[Int64s, Int64s],
    distinct: Sequence[Int64s],
    span: Span,
) -> OperatorArrays:
    """Return what the left entries that are decided give, from the reductions of their matches.

    Parameters
    ----------
    codes : array of int64
        Number of the key of each left entry.
    pairs : tuple of array
        Left entry and right row of each pair that matches.
    """
    entry, right = pairs
    times = inputs[0]["timestamp"]
    # Of tuples with one time, the left one has arrived first, and meets no right one.
    came = inputs[1]["timestamp"][right] < times[entry]
    entry, right = entry[came], right[came]
    names = {
        f"{letter}.{name}": column[row]
        for letter, side, row in zip("lr", inputs, (entry, right), strict=True)
        for name, column in side.items()
    }
    combines = [combine_of(one) for one in operator.reductions]
    every = np.arange(len(entry))
    values = contributions(operator, names, every, ExactSums(), len(entry))
    cells = cells_of(entry, np.zeros(len(entry), np.int64), values, combines)
    nothing = np.ones(len(times), np.bool_)
    nothing[cells.key] = False
    chosen = np.flatnonzero(span.holds(times))
    states, absent = [], {}
    for one, found in zip(operator.reductions, cells.states, strict=True):
        state = np.zeros(len(times), found.dtype)
        state[cells.key] = found
        if one.function not in ("count", "sum"):
            absent[one.name] = nothing[chosen]
            state[nothing] = one.range.low  # masked in results
        states.append(state[chosen])
    end = _earliest_end(operator, times[chosen])
    window = (end - operator.size) // operator.advance
    parts = [part[codes[chosen]] for part in distinct]
    names = _window_names(operator, window, parts, states)
    kept = np.ones(len(end), np.bool_)
    if operator.having is not None:
        of_nothing = _any_of(absent, set(operator.having.names), len(end))
        kept = (_column(operator.having, names, len(end)) != 0) & ~of_nothing
    place = _arrivals(inputs)[0][chosen]
    order = np.lexsort((place, *reversed(parts), end))
    order = order[kept[order]]
    names = {name: column[order] for name, column in names.items()}
    absent = {name: column[order] for name, column in absent.items()}
    given = [inputs[0][one.name][chosen[order]] for one in operator.schemas[0]]
    given += _outputs(operator, names, absent)
    keys = _named_keys(operator, parts, order)
    return OperatorArrays(names["start"], names["end"], keys, given)
