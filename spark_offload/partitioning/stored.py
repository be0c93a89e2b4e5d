# SPDX-License-Identifier: Apache-2.0
"""Inputs that are Parquet files: each task reads its own rows, or range of time, with Arrow.

The least and the greatest time of each row group stand in the footers of the files. So ranges of
time are cut without reading a row, and no row passes through the JVM, is shuffled, or is sorted if
the files are: a task reads the row groups that reach into its range and its halo. Row groups of
which a filter leaves nothing, by the footers, are left out.

The answer is that of the ranges of :mod:`spark_offload.partitioning.tagged`. Rows of one time that
lie in different files come in the order of the files' names.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.fs import LocalFileSystem
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from host import FailureError, UsageError
from host.arrays import Bools, Int64s
from host.columns.kinds import of_units
from host.errors import JoinError, OrderError
from host.files.reading import open_parquet
from host.files.text import reading_file
from host.query.queries import Query
from host.query.tables import plain_type
from host.reference.arrivals import Side
from spark_offload.cluster.query_plans import ParquetRead, parquet_read
from spark_offload.partitioning.columns import arrow_schema
from spark_offload.partitioning.halos import Halos
from spark_offload.partitioning.ranges import LEAST_QUANTILES, OrderProfile
from spark_offload.partitioning.tagged import (
    ALONE_COLUMN,
    HALO_COLUMNS,
    LEAST,
    PAYLOAD,
    ROW_BITS,
    SHARED,
    TAG_COLUMNS,
    order_integers,
    source_of,
    window_width,
)

__all__ = [
    "MOST_READ",
    "StoredInput",
    "StoredRanges",
    "StoredRows",
    "stored_input",
    "stored_inputs",
    "stored_rows",
    "wrong_interval",
]


MOST_FILES = 1 << 10
"""Files of an input whose footers the driver reads, at most."""

MOST_SORTED = 1 << 22
"""Rows of row groups that overlap in time, at most, which a task holds to sort them."""

MOST_READ = 8.0
"""How many times as many rows as there are all tasks may read together, at most.

To read a row with Arrow takes about a fiftieth of what it takes to send it through a shuffle.
"""

PART_ROWS = 1 << 21
"""Rows of a task whose rows come in any order, at most, as far as row groups allow."""

UNIT_ROWS = 1 << 20
"""Rows of row groups in order that are looked at together, at least."""

BATCH_ROWS = 1 << 16
"""Rows of one side in a batch, at most."""

ORDERS = "the order columns are not whole numbers, days, or microseconds, both of one kind"
"""Why tasks cannot find ranges of the order by themselves."""

_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
"""Notes in a footer: days and times are those of another calendar."""


class Group(NamedTuple):
    """A row group of an input: file, place in it, rows, number of the first row, range of times."""

    file: int
    place: int
    rows: int
    first: int
    least: int
    greatest: int


class Interval(NamedTuple):
    """Intervals that start with the time: place of the column in which they end, greatest length.

    The length is a number of units of the order numbers, and a text for messages.
    """

    end: int
    longest: int
    text: str


# An input, as the driver finds it.


@dataclass(frozen=True)
class StoredInput:
    """An input that is nothing but rows and columns of Parquet files.

    Parameters
    ----------
    side : str
        ``"left"`` or ``"right"``, for messages.
    read : ParquetRead
        The files, on paths that are the same on all machines, and what is read of them.
    types : tuple of DataType
        Types of the columns, which are those that Spark would hand over.
    time : int
        Place of the order column among them.
    groups : tuple of Group
        The row groups that have rows which a filter may leave, in the order of the files.
    is_sorted : bool
        Whether the rows were declared sorted by time.
    interval : Interval or None
        What is required of intervals that start with the time.
    """

    side: str
    read: ParquetRead
    types: tuple[pa.DataType, ...]
    time: int
    groups: tuple[Group, ...]
    is_sorted: bool
    interval: Interval | None = None

    @property
    def name(self) -> str:
        """Name in the files of the order column."""
        return self.read.columns[self.time]

    @property
    def rows(self) -> int:
        """Rows of the row groups, those that a filter leaves out among them."""
        return sum(group.rows for group in self.groups)

    @property
    def nothing(self) -> "Chunk":
        """No rows."""
        none = [pa.nulls(0, kind) for kind in self.types]
        rows = pa.RecordBatch.from_arrays(none, names=list(self.read.columns))
        return Chunk(np.zeros(0, np.int64), np.zeros(0, np.int64), rows)

    def reaching(self, begin: int, end: int) -> list[Group]:
        """Return the row groups that have times from ``begin`` up to, without, ``end``."""
        return [group for group in self.groups if group.greatest >= begin and group.least < end]

    def chunks(self, begin: int, end: int) -> "Iterator[Chunk]":
        """Yield the rows from ``begin`` up to, without, ``end``, in the order of time.

        Rows of one time come in the order of the files. Row groups that follow one another in time
        are read one after the other; those that overlap are held and sorted.
        """
        for unit in _units(self.reaching(begin, end)):
            names = sorted({self.read.files[group.file] for group in unit})
            with _reading_files(" or ".join(names)):
                for chunk in self._read(unit, begin, end):
                    if len(chunk.times):
                        self._check(chunk)
                        yield chunk

    def _check(self, chunk: "Chunk") -> None:
        """Raise at an interval that ends before it starts, or is longer than the longest one."""
        if self.interval is None:
            return
        ends = chunk.rows.column(self.interval.end)
        found = order_integers(ends.fill_null(pa.scalar(0, ends.type)))
        length = (found - chunk.times).view(np.uint64)
        known = ends.is_valid().to_numpy(zero_copy_only=False)
        wrong = known & ((found < chunk.times) | (length > self.interval.longest))
        if wrong.any():
            at = int(np.argmax(wrong))
            names = self.name, self.read.columns[self.interval.end]
            first, second, rest = wrong_interval(self.side, names, self.interval.text)
            start = chunk.rows.column(self.time)[at].as_py()
            raise UsageError(f"{first}{start}{second}{ends[at].as_py()}{rest}")

    def _read(self, unit: Sequence[Group], begin: int, end: int) -> "Iterator[Chunk]":
        with ExitStack() as stack:
            runs = []  # files, each with the row groups that follow one another in it
            for number, groups in groupby(unit, key=lambda group: group.file):
                file = stack.enter_context(open_parquet(Path(self.read.files[number])))
                run = list(groups)
                self._require_unchanged(file, number, run)
                runs.append((file, run))
            column = pa.chunked_array(
                [chunk for file, run in runs for chunk in self._times(file, run).chunks]
            )
            times = order_integers(column.combine_chunks())
            numbers = np.concatenate([_numbers(run) for _, run in runs])
            if not (times[1:] < times[:-1]).any():
                low, high = np.searchsorted(times, [begin, end]).tolist()
                yield from self._passing(runs, times, numbers, low, high)
                return
            held = list(self._passing(runs, times, numbers, 0, len(times)))
            times = np.concatenate([chunk.times for chunk in held])
            numbers = np.concatenate([chunk.numbers for chunk in held])
            rows = pa.Table.from_batches([chunk.rows for chunk in held]).combine_chunks()
            falls = np.flatnonzero(times[1:] < times[:-1])
            if self.is_sorted and len(falls):
                self._raise(int(falls[0]), rows.column(self.time), numbers)
            kept = np.flatnonzero((times >= begin) & (times < end))
            order = kept[np.argsort(times[kept], kind="stable")]
            for at in range(0, len(order), BATCH_ROWS):
                chosen = order[at : at + BATCH_ROWS]
                batch = rows.take(pa.array(chosen)).combine_chunks().to_batches()[0]
                yield Chunk(times[chosen], numbers[chosen], batch)

    def _passing(
        self,
        runs: "Sequence[tuple[pq.ParquetFile, Sequence[Group]]]",
        times: Int64s,
        numbers: Int64s,
        low: int,
        high: int,
    ) -> "Iterator[Chunk]":
        """Yield rows as they lie in the files, from that of place ``low`` up to, without, ``high``.

        Parameters
        ----------
        runs : sequence of (ParquetFile, sequence of Group)
            Open files, and the row groups that are read of each.
        times, numbers : array of int
            Order numbers and numbers of all their rows.
        """
        at = 0
        for file, run in runs:
            places = [group.place for group in run]
            for batch in file.iter_batches(BATCH_ROWS, row_groups=places, columns=self.read.stored):
                first, at = at, at + batch.num_rows
                here = slice(max(low, first), min(high, at))
                if here.start < here.stop:
                    own = batch.slice(here.start - first, here.stop - here.start)
                    rows, fits = _wanted(self.read, run[0].file, own)
                    yield Chunk(times[here][fits], numbers[here][fits], rows)
                if at >= high:
                    return

    def _times(self, file: pq.ParquetFile, run: Sequence[Group]) -> pa.ChunkedArray:
        places = [group.place for group in run]
        return file.read_row_groups(places, columns=[self.name]).column(0)

    def _require_unchanged(self, file: pq.ParquetFile, number: int, run: Sequence[Group]) -> None:
        """Raise unless the file is the one that ranges were cut for."""
        metadata, place = file.metadata, _place(file, self.name)
        for group in run:
            there = group.place < metadata.num_row_groups
            told = (group.rows, group.least, group.greatest)
            if not there or _told(metadata, group.place, place) != told:
                raise _changed(self.read.files[number], group.place)

    def _raise(self, fall: int, times: pa.ChunkedArray, numbers: Int64s) -> None:
        """Raise for the row behind ``fall``, which goes back in time."""
        file, row = source_of(int(numbers[fall + 1]))
        raise OrderError.disorder(
            f"{self.side}.{self.name}",
            row,
            times[fall].as_py(),
            times[fall + 1].as_py(),
            part=file or None,
        )


def _wanted(
    read: ParquetRead, number: int, rows: pa.RecordBatch
) -> tuple[pa.RecordBatch, slice | Bools]:
    """Return the columns of a frame from rows of a file, those that it has, and which these are."""
    for name, values in read.keys.items():
        rows = rows.append_column(name, pa.repeat(values[number], rows.num_rows))
    chosen = rows.select(list(read.columns))
    if read.where is None:
        return chosen, slice(None)
    # Only here, as it imports pandas, which takes as long as all of the other modules of a task.
    from pyarrow.acero import Declaration, ProjectNodeOptions, TableSourceNodeOptions

    source = Declaration("table_source", TableSourceNodeOptions(pa.Table.from_batches([rows])))
    test = Declaration("project", ProjectNodeOptions([read.where], ["fits"]), [source])
    fits = test.to_table(use_threads=False).column(0).fill_null(False).combine_chunks()
    found = fits.to_numpy(zero_copy_only=False)
    return (chosen, slice(None)) if found.all() else (chosen.filter(fits), found)


def wrong_interval(side: str, names: tuple[str, str], longest: object) -> tuple[str, str, str]:
    """Return what is said before, between and behind the start and the end of a wrong interval."""
    start, end = names
    rule = f"; it must not end before it starts, nor be longer than {longest}: "
    remedy = "leave the row out, or give a larger longest."
    return f"An interval of the {side} input has {start}=", f" and {end}=", f"{rule}{remedy}"


@contextmanager
def _reading_files(name: str) -> Iterator[None]:
    """Turn errors of reading a file that the driver could read into failures of a task."""
    try:
        with reading_file(Path(name), ".parquet"):
            yield
    except UsageError as error:
        if not isinstance(error.__cause__, (OSError, pa.ArrowException, ValueError)):
            raise  # what is wrong is a row
        raise FailureError(
            f"{str(error).rstrip('.')}; the file changed after the join was planned, or is "
            f"damaged: mend it, and plan the join again."
        ) from error


def _changed(path: str, place: int) -> FailureError:
    return FailureError(
        f"File {path!r} changed after the join was planned (row group {place}); plan the join "
        f"again, and write new rows to a new file."
    )


class Chunk(NamedTuple):
    """Rows of one side, in the order of time: their order numbers, their numbers, the rows."""

    times: Int64s
    numbers: Int64s
    rows: pa.RecordBatch

    def cut(self, at: int) -> "tuple[Chunk, Chunk]":
        """Return the first ``at`` rows, and the others."""
        return (
            Chunk(self.times[:at], self.numbers[:at], self.rows.slice(0, at)),
            Chunk(self.times[at:], self.numbers[at:], self.rows.slice(at)),
        )


def _numbers(run: Sequence[Group]) -> Int64s:
    """Return the numbers of the rows of row groups, which rise with file and place."""
    parts = [np.arange(group.first, group.first + group.rows, dtype=np.int64) for group in run]
    return np.concatenate(parts) + (run[0].file << ROW_BITS)


def _units(groups: Sequence[Group]) -> Iterator[list[Group]]:
    """Yield row groups, those that overlap in time together; each time is in one unit.

    Small row groups that follow one another are taken together, too.
    """
    unit: list[Group] = []
    rows, greatest = 0, LEAST
    for group in sorted(groups, key=lambda group: (group.least, group.greatest, group)):
        follows = group.least > greatest or (
            group.least == greatest and all(before < group for before in unit)
        )
        if unit and follows and rows >= UNIT_ROWS:
            yield sorted(unit)
            unit, rows = [], 0
        unit.append(group)
        rows += group.rows
        greatest = max(greatest, group.greatest)
    if unit:
        yield sorted(unit)


def _most_sorted(groups: Sequence[Group]) -> int:
    """Return how many rows overlap in time, at most, in row groups that are sorted together."""
    most = rows = count = 0
    greatest = LEAST
    for group in sorted(groups, key=lambda group: (group.least, group.greatest)):
        if group.least > greatest:
            rows, count = 0, 0
        rows, count = rows + group.rows, count + 1
        greatest = max(greatest, group.greatest)
        most = max(most, rows if count > 1 else 0)
    return most


# Both inputs, and the ranges of time that tasks read.

_BEHIND = 1 << 63
"""Above any order number."""

_ONE_RANGE = Halos((), ((), ()))


@dataclass(frozen=True)
class StoredRanges:
    """Both inputs of a join, which are nothing but columns of Parquet files, in ranges of time.

    Tasks read these by themselves.

    Parameters
    ----------
    left, right : StoredInput
        The inputs.
    halos : Halos
        Where the ranges and their halos begin; by default, there is one range.
    """

    left: StoredInput
    right: StoredInput
    halos: Halos = _ONE_RANGE

    @property
    def rows(self) -> int:
        """Rows of both inputs."""
        return self.left.rows + self.right.rows

    def profile(self, ranges: int) -> OrderProfile:
        """Return how the rows lie in time, by the footers: evenly in each row group.

        Parameters
        ----------
        ranges : int
            Most ranges that the profile will be asked for.
        """
        groups = [*self.left.groups, *self.right.groups]
        rows = self.left.rows, self.right.rows
        shares = -(-LEAST_QUANTILES // ranges) * ranges
        if not groups:
            return OrderProfile(rows, 0, 0, (0,) * (shares - 1))
        least = np.array([group.least for group in groups], np.float64)
        behind = np.array([group.greatest for group in groups], np.float64) + 1
        counts = np.array([group.rows for group in groups], np.float64)
        # Rows below each edge: slopes add up from edge to edge, so few numbers are needed at once.
        edges, where = np.unique(np.concatenate([least, behind]), return_inverse=True)
        slopes = counts / np.maximum(1, behind - least)
        change = np.bincount(where, np.concatenate([slopes, -slopes]))
        below = np.concatenate([[0.0], np.cumsum(np.cumsum(change)[:-1] * np.diff(edges))])
        wanted = below[-1] * np.arange(1, shares) / shares
        quantiles = np.maximum.accumulate(np.interp(wanted, below, edges))
        return OrderProfile(
            rows,
            min(group.least for group in groups),
            max(group.greatest for group in groups),
            tuple(int(quantile) for quantile in quantiles),
        )

    @property
    def partitions(self) -> int:
        """How many ranges there are."""
        return len(self.halos.starts) + 1

    def read_share(self) -> float:
        """Return how many times as many rows as there are tasks read, all together."""
        read = sum(
            group.rows
            for part in range(self.partitions)
            for own, side in ((self.left, Side.R), (self.right, Side.S))
            for group in own.reaching(*self._bounds(side, part))
        )
        return read / max(1, self.rows)

    def frame(self, session: SparkSession) -> DataFrame:
        """Return a frame with a partition for each range, which holds the range's number."""
        return _numbered(session, self.partitions)

    def tagged(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a range as a frame of :mod:`.tagged` has them.

        Parameters
        ----------
        numbers : iterator of RecordBatch
            The number of the range, as a partition of :meth:`frame` holds it.
        """
        for part in _parts(numbers):
            yield from self._tagged(part)

    def _tagged(self, part: int) -> Iterator[pa.RecordBatch]:
        sides = [
            own.chunks(*self._bounds(side, part))
            for own, side in ((self.left, Side.R), (self.right, Side.S))
        ]
        for left, right in _in_turns(*sides):
            yield self._one(part, left or self.left.nothing, right or self.right.nothing)

    def _one(self, part: int, left: Chunk, right: Chunk) -> pa.RecordBatch:
        """Return rows of both sides as one batch, in the order of arrival."""
        counts = len(left.times), len(right.times)
        times = np.concatenate([left.times, right.times])
        numbers = np.concatenate([left.numbers, right.numbers])
        sides = np.repeat(np.arange(2, dtype=np.int8), counts)
        # The left rows are in order, and so are the right ones; on a tie left rows come first.
        order = np.argsort(times, kind="stable") if all(counts) else np.arange(len(times))
        indices = pa.array(order)
        times, sides = times[order], sides[order]
        columns = [
            pa.array(sides),
            _order_column(times, self.left),
            pa.array(numbers[order]),
        ]
        names = list(TAG_COLUMNS)
        if self.left.types == self.right.types:
            for index, parts in enumerate(zip(left.rows.columns, right.rows.columns, strict=True)):
                one = parts[Side.R if counts[Side.R] else Side.S]
                columns.append(pa.concat_arrays(parts).take(indices) if all(counts) else one)
                names.append(f"{SHARED}{index}")
        else:
            for letter, side, behind, chunk in zip(
                PAYLOAD, Side, (0, counts[Side.R]), (left, right), strict=True
            ):
                at = pa.array(order - behind, mask=sides != side)
                columns += [column.take(at) for column in chunk.rows.columns]
                names += [f"{letter}{index}" for index in range(len(chunk.rows.columns))]
        columns += [
            pa.array(np.full(len(order), part, np.int32)),
            pa.array(times < (self.halos.starts[part - 1] if part else LEAST)),
        ]
        names += HALO_COLUMNS
        if self.halos.departures is not None:
            columns.append(pa.array(self._leaving(times, part)))
            names.append(ALONE_COLUMN)
        return pa.RecordBatch.from_arrays(columns, names=names)

    def _leaving(self, times: Int64s, part: int) -> Bools:
        """Tell which rows leave the window in the range, which answers for them then."""
        steps = self.halos.departures or ()
        begin = steps[part - 1] if part else LEAST
        found: Bools = times >= begin
        return found & (times < steps[part]) if part < len(steps) else found

    def _bounds(self, side: Side, part: int) -> tuple[int, int]:
        """Return the first order number that a range and its halo hold, and that behind it."""
        starts = self.halos.starts
        begin = self.halos.reaches[side][part - 1] if part else LEAST
        return begin, starts[part] if part < len(starts) else _BEHIND


def _numbered(session: SparkSession, count: int) -> DataFrame:
    """Return a frame of so many partitions, each of which holds its number."""
    return session.range(0, count, 1, count)


def _parts(numbers: Iterator[pa.RecordBatch]) -> Iterator[int]:
    """Yield the numbers that a partition of such a frame holds."""
    for batch in numbers:
        yield from batch.column(0).to_pylist()


def _order_column(times: Int64s, own: StoredInput) -> pa.Array:
    """Return order numbers as the common type of the order columns: whole numbers are 64 bits."""
    kind = own.types[own.time]
    return of_units(pa.array(times), pa.int64() if pa.types.is_integer(kind) else kind)


def _in_turns(
    left: Iterator[Chunk], right: Iterator[Chunk]
) -> Iterator[tuple[Chunk | None, Chunk | None]]:
    """Yield rows of both sides that come before all that follow, left rows first on a tie."""
    first, second = next(left, None), next(right, None)
    while first is not None and second is not None:
        end, other = int(first.times[-1]), int(second.times[-1])
        if end <= other:
            # A later left row may have the same time, and comes before right rows of it.
            ready, rest = second.cut(int(np.searchsorted(second.times, end)))
            yield first, ready
            first = next(left, None)
            second = rest if len(rest.times) else next(right, None)
        else:
            ready, rest = first.cut(int(np.searchsorted(first.times, other, side="right")))
            yield ready, second
            second = next(right, None)
            first = rest if len(rest.times) else next(left, None)
    while first is not None:
        yield first, None
        first = next(left, None)
    while second is not None:
        yield None, second
        second = next(right, None)


# Rows whose order does not matter, in parts of about equally many rows.


@dataclass(frozen=True)
class StoredRows:
    """Rows of Parquet files that tasks read by themselves, each some of the row groups.

    Parameters
    ----------
    read : ParquetRead
        The files, and what is read of them.
    time : int
        Place of the one among them without which a row does not count.
    parts : tuple of tuple of (int, int, int)
        For each task, number of the file, place and rows of each row group.
    """

    read: ParquetRead
    time: int
    parts: tuple[tuple[tuple[int, int, int], ...], ...]

    def frame(self, session: SparkSession) -> DataFrame:
        """Return a frame with a partition for each part, which holds the part's number."""
        return _numbered(session, len(self.parts))

    def batches(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part, whose number a partition of :meth:`frame` holds."""
        for part in _parts(numbers):
            for number, groups in groupby(self.parts[part], key=itemgetter(0)):
                with _reading_files(self.read.files[number]):
                    yield from self._read(number, [group[1:] for group in groups])

    def _read(self, number: int, groups: Sequence[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        with open_parquet(Path(self.read.files[number])) as file:
            metadata = file.metadata
            for place, rows in groups:
                there = place < metadata.num_row_groups
                if not there or metadata.row_group(place).num_rows != rows:
                    raise _changed(self.read.files[number], place)
            places = [place for place, _ in groups]
            for batch in file.iter_batches(BATCH_ROWS, row_groups=places, columns=self.read.stored):
                chosen, _ = _wanted(self.read, number, batch)
                times = chosen.column(self.time)
                yield chosen.filter(times.is_valid()) if times.null_count else chosen


def stored_rows(
    frame: DataFrame, columns: Sequence[str], time: str, least: int
) -> StoredRows | str:
    """Return rows of a frame if tasks can read them by themselves, else why they cannot.

    Parameters
    ----------
    frame : DataFrame
        The rows.
    columns : sequence of str
        Which of its columns are read.
    time : str
        The one among them without which a row does not count.
    least : int
        Tasks that there should be at least.
    """
    read = parquet_read(frame)
    if isinstance(read, str):
        return read
    schema = arrow_schema(frame.schema, "given")
    names = tuple(read.columns[frame.columns.index(name)] for name in columns)
    read, at = replace(read, columns=names), list(columns).index(time)
    chosen = pa.schema([schema.field(name) for name in columns])
    groups: list[tuple[int, int, int]] = []

    def note(file: pq.ParquetFile, number: int, places: Collection[int]) -> None:
        for place in places:
            groups.append((number, place, file.metadata.row_group(place).num_rows))

    why = _look_at(read, chosen, at, note)
    if why is not None:
        return why
    total = sum(rows for *_, rows in groups)
    share = max(1, -(-total // max(least, -(-total // PART_ROWS))))
    parts: list[list[tuple[int, int, int]]] = [[]]
    for group, before in zip(groups, accumulate((g[2] for g in groups), initial=0), strict=False):
        if parts[-1] and before // share >= len(parts):
            parts.append([])
        parts[-1].append(group)
    return StoredRows(read, at, tuple(map(tuple, parts)))


# What the driver finds out, from plans and footers.


def stored_inputs(
    left: DataFrame,
    right: DataFrame,
    query: Query,
    intervals: tuple[tuple[str, str], tuple[str, str]] | None = None,
) -> StoredRanges | str:
    """Return the inputs if tasks can read them by themselves, else why they cannot.

    Plans and footers are read for it, and no rows.

    Parameters
    ----------
    left, right : DataFrame
        The inputs.
    query : Query
        The join.
    intervals : (str, str), (str, str), optional
        For each side, the columns of the intervals of an overlap join, whose window is as wide as
        the longest one.
    """
    found = []
    for side, frame, order in zip(("left", "right"), (left, right), query.time, strict=True):
        read = parquet_read(frame)
        if isinstance(read, str):
            return f"the {side} input {read}"
        schema = arrow_schema(frame.schema, side)
        if _order_kind(schema.field(order).type) is None:
            return ORDERS
        own = stored_input(side, read, schema, order, is_sorted=bool(query.sorted))
        if isinstance(own, str):
            return f"the {side} input {own}"
        found.append(own)
    kinds = {_order_kind(own.types[own.time]) for own in found}
    if len(kinds) > 1:
        return ORDERS
    for at, (_, end) in enumerate(intervals or ()):
        place = (left, right)[at].columns.index(end)
        if _order_kind(found[at].types[place]) not in kinds:
            return f"column {end!r} has another kind of values than the starts"
        width = window_width(query, (left, right)[at].schema[query.time[at]].dataType)
        found[at] = replace(found[at], interval=Interval(place, width, str(query.width)))
    return StoredRanges(found[0], found[1])


def _order_kind(kind: pa.DataType) -> str | None:
    """Return the kind of an order column whose numbers stand in footers as they are compared."""
    if pa.types.is_signed_integer(kind):
        return "integer"
    is_time = pa.types.is_date32(kind) or (pa.types.is_timestamp(kind) and kind.unit == "us")
    return str(kind) if is_time else None


def stored_input(
    side: str, read: ParquetRead, schema: pa.Schema, order: str, *, is_sorted: bool
) -> StoredInput | str:
    """Return an input if tasks can read it by themselves, else why they cannot.

    Parameters
    ----------
    side : str
        ``"left"`` or ``"right"``, for messages.
    read : ParquetRead
        What is read.
    schema : Schema
        The columns, as Spark would hand them over.
    order : str
        Name of the order column in ``schema``.
    is_sorted : bool
        Whether the rows were declared sorted by time.
    """
    time = schema.get_field_index(order)
    groups: list[Group] = []
    dark = []  # files whose footers do not tell enough

    def note(file: pq.ParquetFile, number: int, places: Collection[int]) -> None:
        own = _groups(file.metadata, places, number, _place(file, read.columns[time]))
        groups.extend(own or ())
        if own is None:
            dark.append(read.files[number])

    why = _look_at(read, schema, time, note)
    if why is not None:
        return why
    if dark:
        return (
            f"has a file, {dark[0]!r}, whose footer does not tell the times of each row group, or "
            f"tells of nulls among them"
        )
    if _most_sorted(groups) > MOST_SORTED:
        return f"has more than {MOST_SORTED:,} rows in row groups that overlap in time"
    if is_sorted and any(after.least < before.greatest for before, after in pairwise(groups)):
        return "is not sorted by time, as was declared"  # to be complained of row by row
    return StoredInput(side, read, tuple(schema.types), time, tuple(groups), is_sorted)


def _look_at(
    read: ParquetRead,
    schema: pa.Schema,
    time: int,
    note: Callable[[pq.ParquetFile, int, Collection[int]], None],
) -> str | None:
    """Open files, to note what their footers tell; return why tasks cannot read them, if so.

    ``note`` takes a file, its number, and the places of the row groups that are read.
    """
    if len(read.files) > MOST_FILES:
        return f"has {len(read.files):,} files, more than {MOST_FILES:,}"
    if read.columns[time] in read.keys:
        return "has its times in the names of folders"
    types = dict(zip(read.columns, schema.types, strict=True)) | dict(
        zip(read.tested.names, read.tested.types, strict=True)
    )
    for number, path in enumerate(read.files):
        try:
            with open_parquet(Path(path)) as file:
                why = _unlike(file, {name: types[name] for name in read.stored})
                if why is not None:
                    return f"has a file, {path!r}, {why}"
                note(file, number, _places(read, file, number))
        except (JoinError, OSError, pa.ArrowException) as error:
            return f"has a file that Arrow does not read here: {error}"
    return None


def _places(read: ParquetRead, file: pq.ParquetFile, number: int) -> Collection[int]:
    """Return the row groups of a file of which a filter leaves rows, as far as its footer tells."""
    # Footers do not tell of NaN, and Arrow takes it that there is none.
    if read.where is None or any(map(pa.types.is_floating, read.tested.types)):
        return range(file.metadata.num_row_groups)
    # Only here, as it imports pandas.
    from pyarrow.dataset import ParquetFileFormat

    keys = pc.scalar(True)
    for name, values in read.keys.items():
        value = values[number]
        keys &= pc.field(name) == value if value.is_valid else pc.field(name).is_null()
    fragment = ParquetFileFormat().make_fragment(
        read.files[number], LocalFileSystem(), partition_expression=keys
    )
    chosen = fragment.subset(read.where, schema=read.tested)
    return [group.id for group in chosen.row_groups]


def _unlike(file: pq.ParquetFile, types: Mapping[str, pa.DataType]) -> str | None:
    """Return how the columns of a file differ from what Spark reads of it; None if not."""
    found = file.schema_arrow
    for name, kind in types.items():
        at = found.get_field_index(name)
        if at < 0:
            return f"without exactly one column {name!r}"
        own = plain_type(found.field(at).type)
        if own != kind:
            return f"whose column {name!r} is {own} to Arrow and {kind} to Spark"
    if any(note in (file.metadata.metadata or {}) for note in _LEGACY):
        return "that has days and times of the old calendar"
    return None


def _place(file: pq.ParquetFile, name: str) -> int:
    """Return the place of a column without parts among all of a file."""
    return [file.schema.column(at).path for at in range(len(file.schema))].index(name)


def _told(metadata: pq.FileMetaData, at: int, place: int) -> tuple[int, int, int] | None:
    """Return rows, least and greatest time of a row group, if its footer tells them all."""
    group = metadata.row_group(at)
    told = group.column(place).statistics
    if told is None or not told.has_min_max or not told.has_null_count or told.null_count:
        return None
    return group.num_rows, int(told.min_raw), int(told.max_raw)


def _groups(
    metadata: pq.FileMetaData, places: Collection[int], file: int, place: int
) -> list[Group] | None:
    """Return those row groups of a file that have rows, if its footer tells all their times."""
    rows = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
    first = list(accumulate(rows, initial=0))
    groups = []
    for at in filter(rows.__getitem__, places):
        told = _told(metadata, at, place)
        if told is None:
            return None
        groups.append(Group(file, at, told[0], first[at], *told[1:]))
    return groups
