# SPDX-License-Identifier: Apache-2.0
"""Decoded pairs as results in their turn: one-sided rows, strict order, release, rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from host.arrays import Bools, Int64s, UInt64s
from host.reference.arrivals import Side, shifted
from host.reference.types import NO_ROW, JoinType
from host.reference.window import CountWindow, Window
from host.runtime import ColumnLog, Columns
from host.session.intake import Arrived
from host.session.params import JoinParams
from host.session.rows import Rows, TrackedRows

__all__ = [
    "Completion",
    "Delivery",
    "Departures",
    "StrictOrder",
    "departures",
    "materialized",
]

# When rows leave the window: which sent tuple pushes each of them out.


class Departures(ABC):
    """Finds the places in the order of arrival at which tracked rows leave the window.

    A row *leaves at* a place if no tuple at that place or behind it can match the row, but a tuple
    at the preceding place could.
    """

    @abstractmethod
    def stage(self, arrived: Arrived) -> None:
        """Announce tuples that are sent, in the order of arrival."""

    @abstractmethod
    def gone(self, side: Side, rows: TrackedRows, complete: int, reached: int) -> int:
        """Return how many of the first rows leave at the place ``complete`` or before it.

        Parameters
        ----------
        side : Side
            Side of the rows.
        rows : TrackedRows
            The rows.
        complete : int
            At most the number of tuples announced.
        reached : int
            No tuple that is announced later has a smaller timestamp.
        """

    @abstractmethod
    def places(self, side: Side, rows: TrackedRows, count: int) -> Int64s:
        """Return the places at which the first ``count`` rows leave.

        For rows that no tuple has pushed out, the place is at least the number of tuples announced.
        """

    @abstractmethod
    def forget(self, complete: int) -> None:
        """Allow places below ``complete`` to be forgotten; they are not asked for any more."""


def departures(window: Window, first: int = 0) -> Departures:
    """Return the departures for ``window``, which both sides have, from a first place on."""
    if isinstance(window, CountWindow):
        return _ByRank(window.size, first)
    return _ByTime(int(window.lifespan), first)


class _ByTime(Departures):
    """A tuple whose timestamp exceeds a row's timestamp plus the lifespan pushes the row out."""

    def __init__(self, lifespan: int, first: int) -> None:
        self._lifespan = lifespan
        self._times = ColumnLog(first)  # timestamps of all arrivals, by place

    def stage(self, arrived: Arrived) -> None:
        self._times.append(Columns({"time": arrived.times}))

    def gone(self, side: Side, rows: TrackedRows, complete: int, reached: int) -> int:
        del side  # timestamps are the same for both sides
        if complete < self._times.count:
            reached = int(self._times.at("time", complete))
        bound = np.uint64(reached)
        return int(np.searchsorted(self._last(rows.times), bound, side="left"))

    def places(self, side: Side, rows: TrackedRows, count: int) -> Int64s:
        del side
        if not self._times.has("time"):
            return np.zeros(count, np.int64)
        first = self._times.kept
        times = self._times.part("time", first, self._times.count)
        found = np.searchsorted(times, self._last(rows.times[:count]), side="right")
        return found.astype(np.int64) + first

    def forget(self, complete: int) -> None:
        self._times.forget(complete)

    def _last(self, times: UInt64s) -> UInt64s:
        """Return the last timestamp at which each row is in the window."""
        return shifted(times, self._lifespan)[0]


class _ByRank(Departures):
    """The tuple that comes ``size`` tuples of its own side after a row pushes the row out."""

    def __init__(self, size: int, first: int) -> None:
        self._size = size
        self._places = {side: ColumnLog() for side in Side}  # places of each side's tuples
        self._arrivals = first

    def stage(self, arrived: Arrived) -> None:
        for side, tuples in arrived.sides.items():
            self._places[side].append(Columns({"place": tuples.places + self._arrivals}))
        self._arrivals += arrived.count

    def gone(self, side: Side, rows: TrackedRows, complete: int, reached: int) -> int:
        del reached  # timestamps do not matter
        return int(np.searchsorted(self._pushing(side, rows), complete, side="right"))

    def places(self, side: Side, rows: TrackedRows, count: int) -> Int64s:
        found = np.full(count, self._arrivals, np.int64)
        known = self._pushing(side, rows)[:count]
        found[: len(known)] = known
        return found

    def forget(self, complete: int) -> None:
        del complete  # the remaining rows decide what is needed

    def _pushing(self, side: Side, rows: TrackedRows) -> Int64s:
        """Return the places of the tuples that push the first rows out, as far as sent."""
        log = self._places[side]
        begin = rows.first + self._size  # over a count-based window, every row is a tuple
        if begin >= log.count:
            return np.zeros(0, np.int64)
        log.forget(begin)
        return log.part("place", begin, log.count)


# One-sided rows in the results of outer, semi and anti joins.

_NAMES = {Side.R: "left", Side.S: "right"}


class Completion:
    """Keeps a bit for each row in the window, and emits one-sided rows when they leave it.

    In strict order, a row comes before the pairs of the tuple that pushes it out. Rows that no
    tuple pushes out come at the end. The result does not depend on when results arrive from the
    device.

    Parameters
    ----------
    how : JoinType
        Type of the join; any but the inner join, which has no one-sided rows.
    window : CountWindow or TimeWindow
        Window of either side.
    first : int
        Place of the first arrival.
    """

    def __init__(self, how: JoinType, window: Window, first: int = 0) -> None:
        self._how = how
        self._tracked = {side: TrackedRows() for side in Side if how.tracks(side)}
        self._departures = departures(window, first)

    def take(self, side: Side, rows: Int64s, times: UInt64s, answered: Bools | None = None) -> None:
        """Announce rows before their tuples are staged; see :meth:`TrackedRows.add`."""
        if side in self._tracked:
            self._tracked[side].add(rows, times, answered)

    def stage(self, arrived: Arrived) -> None:
        """Announce tuples that will be sent."""
        self._departures.stage(arrived)

    def mark(self, pairs: Columns) -> None:
        """Record pairs that have been found, including pairs that another stream emits."""
        if pairs.num_rows:
            for side, rows in self._tracked.items():
                rows.mark(pairs[_NAMES[side]])

    def oldest_row(self, side: Side) -> int | None:
        """Return the oldest row of ``side`` that can still come alone; None if there is none."""
        return self._tracked[side].oldest if side in self._tracked else None

    def complete(
        self, pairs: Sequence[Columns], complete: int, reached: int, *, ended: bool
    ) -> list[Columns]:
        """Return the results that are now certain.

        Parameters
        ----------
        pairs : sequence of Columns
            Pairs of the result that have become ready. If they have a column ``probe``, they are
            sorted by it, and one-sided rows are inserted at their places. Otherwise those
            rows come behind the pairs.
        complete : int
            Number of first arrivals whose pairs have all been marked and passed to this method.
        reached : int
            No later tuple has a smaller timestamp.
        ended : bool
            Whether no tuple follows.
        """
        alone = [
            rows
            for side, tracked in self._tracked.items()
            if (rows := self._leaving(side, tracked, complete, reached, ended=ended)) is not None
        ]
        self._departures.forget(complete)
        if not alone:
            return [_without_probe(of_pairs) for of_pairs in pairs]
        rows = Columns.concatenate(alone)
        # Rows that leave together come in the order of arrival: on a tie of timestamps, left rows
        # first.
        number, is_right = np.maximum(rows["left"], rows["right"]), rows["left"] == NO_ROW
        rows = rows.take(np.lexsort((number, is_right, rows["time"], rows["place"])))
        if len(pairs) == 1 and "probe" in pairs[0].arrays:
            return [_merged(pairs[0], rows)]
        return [*(_without_probe(of_pairs) for of_pairs in pairs), _results(rows, ())]

    def _leaving(
        self, side: Side, tracked: TrackedRows, complete: int, reached: int, *, ended: bool
    ) -> Columns | None:
        """Return the rows of a side that come alone now, with the places at which they leave."""
        count = len(tracked) if ended else self._departures.gone(side, tracked, complete, reached)
        if not count:
            return None
        places = self._departures.places(side, tracked, count)
        gone = tracked.leave(count)
        wanted = np.flatnonzero((gone["matched"] == self._how.wants_matched) & gone["answered"])
        if not len(wanted):
            return None
        none = np.full(len(wanted), NO_ROW, np.int64)
        numbers = {_NAMES[side]: gone["row"][wanted], _NAMES[side.other]: none}
        return Columns(
            {
                "left": numbers["left"],
                "right": numbers["right"],
                "time": gone["time"][wanted],
                "place": places[wanted],
            }
        )


def _merged(pairs: Columns, alone: Columns) -> Columns:
    """Insert one-sided rows before the pairs of the tuples that push them out."""
    at = np.searchsorted(pairs["probe"], alone["place"], side="left")
    names = [name for name in pairs.arrays if name != "probe"]
    rows = _results(alone, names)
    return Columns({name: np.insert(pairs[name], at, rows[name]) for name in names})


def _results(alone: Columns, names: Sequence[str]) -> Columns:
    """Return one-sided rows as results with columns ``names``; a trace's columns are -1."""
    arrays = {name: np.full(alone.num_rows, -1, np.int64) for name in names}
    return Columns({**arrays, "left": alone["left"], "right": alone["right"]})


def _without_probe(pairs: Columns) -> Columns:
    return Columns({name: array for name, array in pairs.arrays.items() if name != "probe"})


# Restore strict order from punctuated order.


class StrictOrder:
    """Reorder buffer: holds pairs back until no earlier one can follow, and passes them on sorted.

    Pairs are sorted by ``probe``, then by ``stored``. Only pairs of the accelerator's open groups
    are held, so their number does not grow with the stream.

    Parameters
    ----------
    with_probe : bool
        Whether pairs keep their column ``probe`` when they are passed on.
    in_rounds : bool
        Whether the pairs of a probe come in the order in which they are wanted.
    """

    def __init__(self, *, with_probe: bool = False, in_rounds: bool = False) -> None:
        self._held: list[Columns] = []
        self._in_rounds = in_rounds
        self._dropped = {"stored", "origin"} | (set() if with_probe else {"probe"})

    def push(self, parts: Sequence[Columns], complete: int) -> Columns | None:
        """Take pairs; return, sorted, those whose probe is below ``complete``.

        Parameters
        ----------
        parts : sequence of Columns
            Newly decoded pairs.
        complete : int
            No pair with a probe below this number follows.
        """
        self._held += [pairs for pairs in parts if pairs.num_rows]
        if not self._held:
            return None
        held = Columns.concatenate(self._held)
        probe = held["probe"]
        stored = np.zeros_like(probe) if self._in_rounds else held["stored"]
        ready = probe < complete
        count = int(np.count_nonzero(ready))
        if not count:
            self._held = [held]
            return None
        if count == held.num_rows:
            self._held, order = [], _order(probe, stored)
        else:
            self._held = [held.take(np.flatnonzero(~ready))]
            at = np.flatnonzero(ready)
            order = at[_order(probe[at], stored[at])]
        rest = [name for name in held.arrays if name not in self._dropped]
        return Columns({name: held[name][order] for name in rest})

    def sift(self, keep: Callable[[Columns], Columns]) -> None:
        """Leave out held pairs; ``keep`` returns those of its argument that stay."""
        self._held = [keep(pairs) for pairs in self._held]
        self._held = [pairs for pairs in self._held if pairs.num_rows]

    def least(self, column: str) -> int | None:
        """Return the smallest value of ``column`` among the held pairs; None if there are none."""
        return min((int(pairs[column].min()) for pairs in self._held), default=None)


def _order(major: Int64s, minor: Int64s) -> Int64s:
    """Return the order by ``major``, then ``minor``; both are packed in one number if they fit."""
    least = int(minor.min())
    bits = (int(minor.max()) - least).bit_length()
    start = int(major.min())
    if (int(major.max()) - start).bit_length() + bits <= 63:
        packed = ((major - start) << np.int64(bits)) | (minor - least)
        # The groups follow one another, which makes a stable sort fast because it merges sorted
        # runs.
        return np.argsort(packed, kind="stable")
    return np.lexsort((minor, major))


# Turn pairs of row numbers into the rows themselves.


def materialized(join: JoinParams, pairs: Columns) -> tuple[pa.RecordBatch, Columns]:
    """Return the rows of pairs of row numbers, and the pair of each.

    A pair comes once, or once for each window that has both of its rows, with the boundaries.
    """
    schema, width = join.schema, len(join.left)
    own = schema if join.windows is None else pa.schema(list(schema)[: width + len(join.right)])
    columns = list[pa.Array]()
    for rows, name, types in zip(
        join.rows, ("left", "right"), (own.types[:width], own.types[width:]), strict=True
    ):
        if types:
            columns += _taken(rows, pairs[name], types)
    if not columns:
        raise ValueError("A result needs at least one column")
    batch = pa.RecordBatch.from_arrays(columns, schema=own)
    if join.windows is None:
        return batch, pairs
    repeats, boundaries = join.windows.repeated(batch)
    columns = [*batch.take(pa.array(repeats)).columns, *boundaries]
    return pa.RecordBatch.from_arrays(columns, schema=schema), pairs.take(repeats)


def _taken(rows: Rows, numbers: Int64s, types: Sequence[pa.DataType]) -> list[pa.Array]:
    """Return columns of rows, of the given ``types``, with nulls where there is no row."""
    there = numbers != NO_ROW
    if there.all():
        return rows.take(numbers)
    if not there.any():
        return [pa.nulls(len(numbers), kind) for kind in types]
    places = pa.array(np.cumsum(there) - 1, mask=~there)
    return [column.take(places) for column in rows.take(numbers[there])]


# Hand results on in their turn, and forget the rows that no later result can refer to.


class Delivery:
    """Queues the results of one execution whose turn it is.

    Pairs wait for their star if their order is strict, and one-sided rows wait until no pair
    of theirs can come any more. Rows are forgotten once all results that can refer to them have
    been taken.

    Parameters
    ----------
    params : JoinParams
        The execution.
    completion : Completion or None
        What finds the one-sided rows; None if only pairs are asked for.
    in_order : bool
        Whether pairs come in the strict order, so that none waits for its star.

    Attributes
    ----------
    ready : list of Columns
        Results that nobody has taken yet.
    is_cut : bool
        Whether the execution ends before its input does.
    """

    def __init__(
        self,
        params: JoinParams,
        completion: Completion | None,
        *,
        in_order: bool = False,
    ) -> None:
        self._params, self._completion = params, completion
        self._order = StrictOrder(with_probe=completion is not None, in_rounds=params.in_rounds)
        self._waits = params.strict and not in_order
        # Numbers below which no later result refers to a row.
        self._limits = dict.fromkeys(Side, 0)
        self.ready: list[Columns] = []
        self.is_cut = False

    def sift(self, keep: Callable[[Columns], Columns]) -> None:
        """Drop pairs that wait for their star, unless ``keep`` returns them."""
        self._order.sift(keep)

    def push(self, parts: Sequence[Columns], complete: int, reached: int, *, done: bool) -> None:
        """Queue the results whose turn it is.

        Parameters
        ----------
        parts : list of Columns
            Pairs that have been decoded.
        complete : int
            Number of first arrivals whose pairs have all been decoded.
        reached : int
            No later tuple has a smaller timestamp.
        done : bool
            Whether no pair can follow.
        """
        params = self._params
        if self._waits:
            pairs = self._order.push(parts, complete)
            parts = [] if pairs is None else [pairs]
        if self._completion is not None:
            goes_on = self.is_cut or (
                done and params.options.is_cut is not None and params.options.is_cut()
            )
            parts = self._completion.complete(parts, complete, reached, ended=done and not goes_on)
        self.ready += [results for results in parts if results.num_rows]

    def allow(self, oldest: dict[Side, int]) -> None:
        """Forget the rows below ``oldest``, as soon as no result that waits refers to them."""
        for side, decoded in oldest.items():
            held = self._order.least("left" if side is Side.R else "right")
            alone = None if self._completion is None else self._completion.oldest_row(side)
            self._limits[side] = min(row for row in (decoded, held, alone) if row is not None)

    def take(self, most: int) -> Columns:
        """Return the next results, which are there, ``most`` at the most."""
        pairs = self.ready.pop(0)
        if most < pairs.num_rows:
            self.ready.insert(0, pairs.slice(most))
        return pairs.slice(0, most)

    def forget(self) -> None:
        """Forget the rows that no later result can refer to, once all results were taken."""
        for side, before in self._limits.items():
            self._params.rows[side].forget(before)
