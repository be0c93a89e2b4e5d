# SPDX-License-Identifier: Apache-2.0
"""Aggregates of the matches of each left row: a join whose pairs nobody needs to see."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from host.arrays import Array, Bools, Int64s, UInt64s
from host.columns.codes import numbered
from host.columns.encoding import EncodedJoin, encode
from host.columns.kinds import contiguous, one_batch
from host.devices import Device
from host.devices.waiting import Conversation, Deadline, Work
from host.engine.asof import places
from host.engine.equal_keys import merge_places
from host.engine.software import SoftwareEngine, Tuples
from host.errors import AcceleratorLimitError, DeviceError, UsageError
from host.operators.panes import COMBINES, Cells, cells_of, reduce_ranges
from host.operators.states import ROWS, AggregateStates, State
from host.operators.windowed import unused
from host.protocol.codecs import WordCodec
from host.protocol.configuration import MARKS, configuration, require_abilities
from host.protocol.manifest import JoinAggregateManifest
from host.protocol.segments import largest_window, outgrown, side_label
from host.query.ordering import Ordering
from host.query.queries import Aggregate, Query
from host.query.tables import require_column
from host.reference.arrivals import Side
from host.reference.arrivals import places as as_places
from host.reference.predicate import Bounds
from host.reference.types import JoinType
from host.reference.window import CountWindow, TimeWindow
from host.session.join import Join

__all__ = [
    "DeviceMatches",
    "MatchPass",
    "aggregate_matches",
    "passes_of",
    "require_exact",
    "require_matches",
    "require_names",
]

# Which right rows each left row may match, as passes of a join aggregate.
#
# A join aggregate shows a left tuple the right tuples that came before it, and are not too old. A
# query asks for earlier and later rows. So each left row is sent late enough to come behind all
# of its right rows, with a time from which the lifespan reaches back to the first of them.


@dataclass(frozen=True, eq=False)
class MatchPass:
    """Times with which each left row meets a range of right rows.

    A left row meets those right rows before it whose time is at most ``lifespan`` before its own.

    Parameters
    ----------
    stored : array of uint64
        Time of each right row, ascending.
    after : array of int64
        For each left row, the number of right rows that are sent before it, ascending.
    now : array of uint64
        Time of each left row.
    lifespan : int
    """

    stored: UInt64s
    after: Int64s
    now: UInt64s
    lifespan: int

    def of(self, right: Bools, left: Bools) -> "MatchPass":
        """Return the pass with some of the rows only."""
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(right)])
        return MatchPass(
            self.stored[right], before[self.after[left]], self.now[left], self.lifespan
        )

    def require_room(self, manifest: JoinAggregateManifest) -> None:
        """Raise unless the accelerator holds all right rows that a left row may meet.

        Raises
        ------
        CapacityError
            If it has too few places; the error tells how many are needed.
        """
        needed, first = largest_window(self.stored, self.lifespan, manifest.capacity)
        if first is not None:
            raise outgrown(manifest, side_label(Side.S), needed, first)


def passes_of(encoded: EncodedJoin, manifest: JoinAggregateManifest) -> list[MatchPass]:
    """Return the passes that together show each left row all right rows of the query's window.

    No right row is in two passes of a left row. A window of time takes one pass. One of rows takes
    two, because it reaches back by right rows and ahead by left rows: their numbers are the times.

    Raises
    ------
    AcceleratorLimitError
        If the times need more bits than the accelerator's timestamps have.
    """
    left, right = encoded.left.timestamp, encoded.right.timestamp
    window = encoded.plan.window
    if not isinstance(window, CountWindow):
        # No difference of two times is greater than the greatest time.
        greatest = max((int(times[-1]) for times in (left, right) if len(times)), default=0)
        reach = min(int(window.lifespan), greatest)
        _require_bits(greatest + 2 * reach, manifest)
        now = left + np.uint64(reach)
        return [MatchPass(right, places(right, now, after=True), now, 2 * reach)]
    size = min(int(window.size), len(left) + len(right) + 1)
    _require_bits(len(left) + len(right) + size, manifest)
    rows, others = np.arange(len(left)), np.arange(len(right))
    earlier = places(right, left, after=False)
    passed = places(left, right, after=True)  # left rows before each
    ahead = rows + size
    return [
        MatchPass(
            others.astype(np.uint64),
            earlier,
            np.maximum(earlier - 1, 0).astype(np.uint64),
            size - 1,
        ),
        MatchPass(
            passed.astype(np.uint64),
            np.searchsorted(passed, ahead, side="right").astype(np.int64),
            ahead.astype(np.uint64),
            size - 1,
        ),
    ]


def _require_bits(greatest: int, manifest: JoinAggregateManifest) -> None:
    needed, bits = greatest.bit_length(), manifest.timestamp_bits
    if needed > bits:
        raise AcceleratorLimitError(
            f"To meet later rows too, left rows are sent behind them, with times of {needed} bits, "
            f"but the accelerator's timestamps have {bits}",
            f"generate it with --timestamp-bits {needed}, or use a coarser order column or a "
            f"smaller window",
        )


# Aggregates of matches on an accelerator that sends one word per left row.

#: Results that are collected at a time, and clock cycles of one exchange.
_RESULT_WORDS, _EXCHANGE_CYCLES = 1 << 14, 1 << 22


#: What the matches of each left row are reduced to: by its function, one entry per row of the left
#: table. Sums are Python's integers if 64 bits might not hold them; a least or a greatest value
#: means nothing where there is none.
Reduced: TypeAlias = dict[str, Array]


class DeviceMatches:
    """A query that an open join aggregate answers, once for each column that is aggregated.

    Parameters
    ----------
    left, right : pa.Table
        The rows.
    query : Query
        Which rows match; an inner join.
    device : Device
        An open device with a :class:`~host.protocol.manifest.JoinAggregateManifest`, which nobody
        else uses meanwhile; it stays open.
    deadline : Deadline
        Longest time without progress of the device.
    work : Work
        What the device takes is added to it; by default to a new one.

    Raises
    ------
    UsageError
        If the query does not suit the inputs or the device.
    """

    def __init__(
        self,
        left: pa.Table,
        right: pa.Table,
        query: Query,
        device: Device,
        deadline: Deadline | None = None,
        work: Work | None = None,
    ) -> None:
        manifest = device.manifest
        assert isinstance(manifest, JoinAggregateManifest)
        self._manifest = manifest
        self._codec = WordCodec(manifest)
        self._device = device
        self._deadline = Deadline() if deadline is None else deadline
        self._rows = left.num_rows
        self._join = encode(left, right, query, manifest)
        require_exact(self._join)
        self._passes = passes_of(self._join, manifest)
        self.work = Work() if work is None else work

    def values(self, values: Int64s, valid: Bools | None, name: str) -> Reduced:
        """Return what one column of the right table is reduced to for each left row.

        Parameters
        ----------
        values : array of int64
            Value of each right row.
        valid : array of bool or None
            Which right rows have a value; None if all have one.
        name : str
            Name of the column, for errors.

        Raises
        ------
        AcceleratorLimitError
            If the values lie too far apart.
        CapacityError
            If the accelerator has no room for the rows that a left row may meet.
        DeviceError
            If the accelerator reports a fault, or makes no progress.
        """
        side = self._join.right
        sent = np.ones(len(side), np.bool_) if side.valid is None else side.valid
        if valid is not None:
            sent = sent & valid[side.row]
        own = values[side.row]
        base = self._base(own[sent], name)
        half = 1 << self._manifest.value_bits - 1
        nothing = {"count": 0, "sum": 0, "min": half - 1, "max": -half}
        found: Reduced = {name: np.full(self._rows, value) for name, value in nothing.items()}
        left = self._join.left
        probing = np.ones(len(left), np.bool_) if left.valid is None else left.valid
        rows = left.row[probing]
        for one in self._passes:
            answer = self._run(one.of(sent, probing), own[sent] - base, sent, probing)
            for name, sent_as in _SENT_AS.items():
                found[name][rows] = COMBINES[name](found[name][rows], answer[sent_as])
        return _moved(found, base)

    def _base(self, values: Int64s, name: str) -> int:
        """Return the number that is taken from values so that they fit the accelerator's."""
        if not len(values):
            return 0
        least, most = int(values.min()), int(values.max())
        bits = self._manifest.value_bits
        if (needed := (most - least).bit_length()) > bits:
            raise AcceleratorLimitError(
                f"Values of column {name!r} from {least} to {most} need {needed} bits, but the "
                f"accelerator has {bits} beside a key",
                f"generate it with --value-bits {needed}, or aggregate on 'software:'",
            )
        return min(least + (1 << bits - 1), int(np.iinfo(np.int64).max))

    def _run(
        self, chosen: MatchPass, values: Int64s, sent: Bools, probing: Bools
    ) -> dict[str, Int64s]:
        """Send one pass; return the reductions of the left rows in it."""
        chosen.require_room(self._manifest)
        words = self._words(chosen, values, sent, probing)
        window = TimeWindow(chosen.lifespan)
        setting = configuration(self._manifest, self._join.plan.bounds, window, Ordering.none())
        words = np.concatenate([setting, words, self._codec.pack_control("FLUSH")])
        room = np.zeros((_RESULT_WORDS, self._manifest.result_word.columns), np.uint64)
        talk = Conversation(
            self._device, self._deadline, self._codec.marks, room, _EXCHANGE_CYCLES, self.work
        )
        with closing(talk):
            results = self._codec.unpack_results(talk.send(words, MARKS + 1))
        if results.overflow.any() or results.disorder.any() or results.illegal.any():
            raise DeviceError(
                f"Device {self._device.uri!r} reports a fault of a pass that was checked before "
                f"it was sent; its bundle is not what its manifest says, generate it again."
            )
        is_value = results.kind == self._codec.pair
        if int(is_value.sum()) != len(chosen.now):
            raise DeviceError(
                f"Device {self._device.uri!r} has sent {int(is_value.sum())} values for "
                f"{len(chosen.now)} left rows; its bundle is not what its manifest says, generate "
                f"it again."
            )
        return {name: column[is_value] for name, column in results.values.items()}

    def _words(self, chosen: MatchPass, values: Int64s, sent: Bools, probing: Bools) -> UInt64s:
        """Return the tuples of a pass in the order in which they are sent."""
        places = chosen.after + np.arange(len(chosen.after))
        sides = np.full(len(chosen.stored) + len(chosen.now), Side.S, np.uint8)
        sides[places] = Side.R
        is_left = sides == Side.R
        keys = {}
        for name, column in self._join.right.keys.items():
            keys[name] = np.empty(len(sides), column.dtype)
            keys[name][~is_left] = column[sent]
            keys[name][is_left] = self._join.left.keys[name][probing]
        times = np.empty(len(sides), np.uint64)
        times[~is_left], times[is_left] = chosen.stored, chosen.now
        beside = np.zeros(len(sides), np.int64)
        beside[~is_left] = values
        return self._codec.pack_tuples(sides, keys, times, beside)


#: What a word calls the reductions of a left row's matches.
_SENT_AS = {"count": "count", "sum": "total", "min": "least", "max": "most"}


def _moved(found: Reduced, base: int) -> Reduced:
    """Return the reductions of values that ``base`` is added to again."""
    count, total = found["count"], found["sum"]
    largest = int(np.abs(total).max(initial=0)) + int(count.max(initial=0)) * abs(base)
    if largest > np.iinfo(np.int64).max:
        total = total.astype(object)
    return {
        "count": count,
        "sum": total + count.astype(total.dtype) * base,
        "min": np.where(count > 0, found["min"] + base, 0),
        "max": np.where(count > 0, found["max"] + base, 0),
    }


def require_exact(join: EncodedJoin) -> None:
    """Raise unless every match of the device is a match of the query: it sends no pairs to check.

    Raises
    ------
    AcceleratorLimitError
        If a term needs a second look at its pairs.
    """
    if not join.plan.is_exact:
        rough = [str(term.term) for term in join.plan.rough_terms]
        what = (rough or [f"'{join.plan.condition and join.plan.condition.text}'"])[0]
        raise AcceleratorLimitError(
            f"The pairs of {what} must be compared once more by their rows, but the accelerator "
            f"sends no pairs",
            "compare integers, times or whole decimals, or use a device of pairs, such as "
            "'software:'",
        )


# Whether a join aggregate can answer a query, as far as its rows are not seen.


def require_names(names: Collection[str], taken: Collection[str]) -> None:
    """Raise unless there are names of aggregates of matches, and no left column has one of them."""
    if not names:
        raise UsageError("Matches need at least one aggregate, such as n=count.")
    for name in names:
        if name in taken:
            raise UsageError(
                f"An aggregate cannot be called {name!r}, as a left column is; choose another name."
            )


def require_matches(
    left: pa.Schema,
    right: pa.Schema,
    query: Query,
    aggregates: Mapping[str, Aggregate],
    manifest: JoinAggregateManifest,
) -> EncodedJoin:
    """Raise unless a join aggregate can answer a query about columns of these types.

    Whether values, times and windows fit is known from the rows only.

    Parameters
    ----------
    left, right : pa.Schema
        Columns of both tables.
    query : Query
        Which rows match.
    aggregates : mapping of str to Aggregate
        What is computed of the right columns.
    manifest : JoinAggregateManifest
        Of the accelerator.

    Returns
    -------
    EncodedJoin
        The encoding of no rows, whose fields are those of the terms.

    Raises
    ------
    AcceleratorLimitError
        If it compares or aggregates no such columns.
    UsageError
        If the query does not suit the columns.
    """
    encoded = encode(left.empty_table(), right.empty_table(), query, manifest)
    require_exact(encoded)
    states = AggregateStates(right, aggregates)
    for name in dict.fromkeys(one.column for one in aggregates.values() if one.column is not None):
        states.require_integers(name)
    return encoded


# Aggregates of the matches of each left row: a join whose pairs nobody needs to see.
#
# Pairs are reduced as they come, so what is kept is a state for each left row that has a match.

#: Pairs that are aggregated at a time, about.
_PIECE = 1 << 18


def aggregate_matches(
    left: pa.Table,
    right: pa.Table,
    query: Query,
    aggregates: Mapping[str, Aggregate | str | tuple[str, str]],
    device: Device,
    **options: Any,
) -> pa.Table:
    """Return every left row with aggregates of the right rows that it is joined with.

    The device sends the pairs, which are reduced here. A device with a
    :class:`~host.protocol.manifest.JoinAggregateManifest` reduces them itself, exactly or not at
    all: it takes integers, times and the like, and terms that need no second look at a pair.

    Parameters
    ----------
    left, right : pa.Table
        The rows.
    query : Query
        Which rows match, over which window. Its type of join, its ordering and its suffix do not
        matter.
    aggregates : mapping of str to Aggregate, str or (str, str)
        What is computed of the columns of right rows, by the name of its column. A count of no
        match is 0, every other aggregate is null.
    device : Device
        An open device, which nobody else uses meanwhile; it stays open.
    options
        As for :class:`~host.session.params.JoinOptions`; for a join aggregate, those of
        :class:`DeviceMatches`.

    Returns
    -------
    pa.Table
        The left columns, then the aggregates; the left rows in their order.

    Raises
    ------
    UsageError
        If the query does not suit the inputs or the device, or an aggregate its column.
    """
    for word, is_asked in (("per_window", query.per_window), ("pairs", query.once)):
        if is_asked:
            raise UsageError(
                f"{word} has no meaning for aggregates of matches, whose result has each left row "
                f"once; leave it out."
            )
    chosen = Aggregate.named(aggregates)
    require_names(chosen, left.column_names)
    columns = list(dict.fromkeys(one.column for one in chosen.values() if one.column is not None))
    for table, needed, side in (
        (left, query.columns(0), "left"),
        (right, [*query.columns(1), *columns], "right"),
    ):
        for name in needed:
            require_column(table.column_names, name, f"the {side} table")
    states = AggregateStates(right.schema, chosen)
    # Only columns that are compared travel to the device, and pairs come back as row numbers.
    sides = (
        _numbered(left, query.columns(0)),
        _numbered(right, query.columns(1)),
    )
    asked = replace(query, how=JoinType.INNER, ordering=Ordering.none(), suffix="_of_right")
    if isinstance(device.manifest, JoinAggregateManifest):
        require_abilities(query, device.manifest, device.uri)
        matches = DeviceMatches(*sides, asked, device, **options)
        return _with_aggregates(left, _reduced(matches, right, columns, states), states, chosen)
    if device.is_software_engine and not options:
        encoded = encode(*sides, asked, device.manifest)
        if encoded.plan.is_exact:  # other pairs are compared once more by their rows
            found = _found_in_software(encoded, right.select(columns), states)
            return _with_aggregates(left, found, states, chosen)
    join = Join(*sides, asked, device, **options)
    places = (sides[0].num_columns - 1, sides[0].num_columns + sides[1].num_columns - 1)
    cells, values = Cells.none(len(states.states)), right.select(columns)
    for rows, others in _pieces(join.batches(), places):
        matches = _batch(values, others)
        added = states.of_rows(matches)
        cells = cells.with_tuples(rows, np.zeros_like(rows), added, states.combines)
    return _with_aggregates(left, cells, states, chosen)


def _reduced(
    matches: DeviceMatches, right: pa.Table, columns: Sequence[str], states: AggregateStates
) -> Cells:
    """Return the states of all left rows that have a match, as a device has reduced them."""
    batch = one_batch(right.select(columns))
    found: dict[State, Array] = {}
    for name in columns:
        values, valid = states.integers(batch, name)
        reduced = matches.values(values, valid, name)
        found |= {(function, name): part for function, part in reduced.items()}
        if valid is None:
            found[ROWS] = reduced["count"]
    if ROWS not in found:
        found[ROWS] = matches.values(np.zeros(right.num_rows, np.int64), None, "*")["count"]
    rows = np.flatnonzero(found[ROWS])
    return Cells(rows, np.zeros_like(rows), tuple(found[state][rows] for state in states.states))


def _found_in_software(join: EncodedJoin, values: pa.Table, states: AggregateStates) -> Cells:
    """Return the states of all left rows that have a match, by the software engine.

    The matches of a left row are a stretch of the sorted right rows if nothing but equal keys and
    the window, or a single band, chooses them. Stretches are reduced without being expanded, so
    that a row with a million matches costs as much as one with two. Counts and sums of integers
    are so with a second band, or with a band and a window. Others are expanded piece by piece.

    Parameters
    ----------
    join : EncodedJoin
        The rows.
    values : pa.Table
        The columns of the right rows that are aggregated.
    states : AggregateStates
        What is kept.
    """
    sides = join.left, join.right
    fields: list[tuple[UInt64s, UInt64s]] = []
    bounds: list[Bounds] = []
    equal = [name for name, bound in join.plan.bounds.items() if bound == Bounds(0, 0)]
    if equal:
        codes = numbered([(sides[0].keys[name], sides[1].keys[name]) for name in equal])
        fields, bounds = [(codes.left, codes.right)], [Bounds(0, 0)]
    for name, bound in join.plan.bounds.items():
        if name not in equal:
            left, right = (as_places(side.keys[name]) for side in sides)
            fields.append((left, right))
            bounds.append(bound)
    arrivals = merge_places(sides[0].timestamp, sides[1].timestamp)
    tuples = [
        Tuples(
            [pair[at] for pair in fields],
            side.timestamp,
            arrivals[at],
            side.row,
            side.valid,
        )
        for at, side in enumerate(sides)
    ]
    if not all(len(each) for each in tuples):
        return Cells.none(len(states.states))
    contributions = states.of_rows(_batch(values, join.right.row))
    adding = all(combine is np.add for combine in states.combines)
    adding &= all(column.dtype == np.int64 for column in contributions)
    engine = SoftwareEngine(bounds, join.plan.window)
    found = engine.matches(tuples[0], tuples[1], adding=adding)
    if found is None:
        return Cells.none(len(states.states))
    index, boxes, reads = found
    if not len(reads.probe):
        return Cells.none(len(states.states))
    if index.has_sums:
        sums = index.sums(reads, boxes, contributions)
        some = np.flatnonzero(sums[states.states.index(ROWS)])
        parts = [(join.left.row[reads.probe[some]], [column[some] for column in sums])]
    elif index.is_exact(boxes):
        order, ends = index.order(), reads.start + reads.count
        parts = [
            (
                join.left.row[reads.probe],
                [
                    reduce_ranges(column[order], reads.start, ends, combine)
                    for column, combine in zip(contributions, states.combines, strict=True)
                ],
            )
        ]
    else:
        parts = []
        for probe, number in index.pieces(reads.by_probe(), boxes, _PIECE):
            given = [column[number] for column in contributions]
            piece = cells_of(probe, np.zeros_like(probe), given, states.combines)
            parts.append((join.left.row[piece.key], list(piece.states)))
    # A left row is in two pieces if one ends with some of its pairs.
    rows = np.concatenate([row for row, _ in parts])
    columns = [np.concatenate(column) for column in zip(*(part for _, part in parts), strict=True)]
    return cells_of(rows, np.zeros_like(rows), columns, states.combines)


def _numbered(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return columns of a table, each once, and the numbers of its rows as the last one."""
    numbers = pa.array(np.arange(table.num_rows, dtype=np.int64))
    return table.select(list(dict.fromkeys(names))).append_column(unused("row", names), numbers)


def _pieces(
    batches: Iterator[pa.RecordBatch], places: tuple[int, int]
) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield the row numbers of pairs, which stand in two columns, many at a time."""
    gathered: list[pa.RecordBatch] = []
    for batch in chain(batches, [None]):
        gathered += [] if batch is None else [batch]
        count = sum(one.num_rows for one in gathered)
        if count >= _PIECE or (count and batch is None):
            table, gathered = pa.Table.from_batches(gathered), []
            rows, others = (contiguous(table.column(place)).to_numpy() for place in places)
            yield rows, others


def _batch(values: pa.Table, numbers: Int64s) -> pa.RecordBatch:
    """Return rows by their numbers; without a column, only how many there are matters."""
    if not values.num_columns:
        return pa.RecordBatch.from_arrays([pa.array(numbers)], names=["number"])
    return one_batch(values.take(pa.array(numbers)))


def _with_aggregates(
    left: pa.Table, cells: Cells, states: AggregateStates, aggregates: Mapping[str, Aggregate]
) -> pa.Table:
    place = np.zeros(left.num_rows, np.int64)
    place[cells.key] = np.arange(len(cells))
    alone = np.ones(left.num_rows, np.bool_)
    alone[cells.key] = False
    places = pa.array(place, mask=alone)
    none = [pa.array([], field.type) for field in states.schema]
    results = states.results(cells.states) if len(cells) else none
    for (name, one), column in zip(aggregates.items(), results, strict=True):
        found = column.take(places)
        filled = pc.fill_null(found, 0) if one.function == "count" else found
        left = left.append_column(name, filled)
    return left
