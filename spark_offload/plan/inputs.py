# SPDX-License-Identifier: Apache-2.0
"""The two inputs of a join: what is known of them, what is refused, and both as one frame."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from host import CountWindow, UsageError
from host.columns.kinds import DAY, Kind
from host.query.quantities import Duration
from host.query.queries import Query, Term
from host.reference.arrivals import Side
from host.reference.types import JoinType
from spark_offload.cluster.machines import cluster_of, ship_packages
from spark_offload.cluster.query_plans import (
    FILTERING,
    NO_ESTIMATE,
    estimated_bytes,
    estimated_rows,
    is_plain_read,
    partition_settings,
)
from spark_offload.errors import raised
from spark_offload.partitioning.columns import arrow_schema, common_type, told_apart
from spark_offload.partitioning.halos import HaloCounts, count_halos
from spark_offload.partitioning.placement import Facts, Placement
from spark_offload.partitioning.ranges import Cuts, OrderProfile, lazy_cuts, profile_order
from spark_offload.partitioning.stored import (
    StoredInputs,
    StoredRanges,
    stored_inputs,
    wrong_interval,
)
from spark_offload.partitioning.tagged import (
    TaggedInput,
    can_be_cut,
    order_frame,
    tagged_frame,
    tagged_ranges,
    window_width,
)
from spark_offload.task.rows import SideCheck
from spark_offload.task.task import in_utc
from spark_offload.verification.own_join import Difference, difference_of

__all__ = [
    "Intervals",
    "JoinInputs",
    "Tagged",
    "checked_by_rules",
    "checked_for_disorder",
    "checked_for_nulls",
    "longest_of",
]

# The two inputs of a join: what is known of them, and both as one tagged frame.


@dataclass(frozen=True)
class Tagged:
    """Rows of both inputs in the order of arrival.

    Parameters
    ----------
    frame : DataFrame
        The rows; see :mod:`spark_offload.partitioning.tagged`.
    halos : HaloCounts or None
        For a count-based window over ranges of time: how large the halos are.
    stored : StoredRanges or None
        What tasks read the rows with, if they do; the frame then holds the number of each range.
    """

    frame: DataFrame
    halos: HaloCounts | None = None
    stored: StoredRanges | None = None

    @property
    def told(self) -> dict[str, Any]:
        """What tasks must know of the rows, by the parameters of their description."""
        return {"halos": self.halos, "stored": self.stored}


@dataclass(frozen=True)
class Intervals:
    """What is required of the intervals of both inputs of an overlap join.

    None ends before it starts, and none is longer than the longest. One without a start or an end
    passes.

    Parameters
    ----------
    columns : (str, str), (str, str)
        For each side, the columns with the start and the end.
    longest : int or Duration
        Largest length.
    """

    columns: tuple[tuple[str, str], tuple[str, str]]
    longest: int | Duration

    def checked(self, left: DataFrame, right: DataFrame) -> tuple[DataFrame, DataFrame]:
        """Return frames that fail on an interval that will not do.

        Raises
        ------
        UsageError
            If two columns have no difference, or no such one.
        """
        return self._checked(left, Side.R), self._checked(right, Side.S)

    def _checked(self, frame: DataFrame, side: Side) -> DataFrame:
        names = self.columns[side]
        rows, (ends, begins) = _columns(frame, names)
        holds = _length(frame, names, self.longest).holds(ends, begins)
        texts = wrong_interval(("left", "right")[side], names, self.longest)
        fails = raised(UsageError, texts[0], begins, texts[1], ends, texts[2]).cast("boolean")
        missing = begins.isNull() | ends.isNull()
        fine = F.when(missing | F.coalesce(holds, F.lit(False)), True).otherwise(fails)
        checked = rows.where(fine)
        return checked if rows is frame else checked.toDF(*frame.columns)


@dataclass(frozen=True)
class JoinInputs:
    """The inputs of one join.

    Parameters
    ----------
    left, right : DataFrame
        The frames, checked to have the columns of the query.
    query : Query
        What is joined.
    intervals : Intervals, optional
        What is required of the intervals of an overlap join, where tasks read the rows.
    """

    left: DataFrame
    right: DataFrame
    query: Query
    intervals: Intervals | None = None

    @property
    def order_type(self) -> DataType:
        """Common type of the order columns."""
        left, right = self.query.time
        return common_type(self.left.schema[left].dataType, self.right.schema[right].dataType)

    def facts(self, *, fills: bool = False, counted: bool = False) -> Facts:
        """Return what the placement of the rows is chosen by.

        Parameters
        ----------
        fills : bool
            Whether a task's window must hold few rows.
        counted : bool
            Whether Spark reads the tagged rows before the join, to count windows.
        """
        order_type = self.order_type
        cut = can_be_cut(order_type)
        left, right = self._tagged_inputs()
        return Facts(
            cores=cluster_of(self.left.sparkSession).cores,
            sizes=lambda: (estimated_bytes(self.left), estimated_bytes(self.right)),
            plain=lambda: is_plain_read(self.left) and is_plain_read(self.right),
            width=window_width(self.query, order_type) if cut and self.query.is_timed else None,
            order_type=None if cut else order_type.simpleString(),
            profile=lambda ranges: profile_order(order_frame(left, right, order_type), ranges),
            rows=self._estimated_rows,
            filtered=lambda: all(
                is_plain_read(rows, FILTERING) for rows in (self.left, self.right)
            ),
            settings=lambda: partition_settings(self.left.sparkSession),
            fills=fills,
            stored=lambda: "the windows are counted before" if counted else self._stored(),
        )

    def _stored(self) -> StoredInputs | str:
        columns = None if self.intervals is None else self.intervals.columns
        return stored_inputs(self.left, self.right, self.query, columns)

    def profile(self, ranges: int = 1) -> OrderProfile | None:
        """Read how the rows of both inputs lie in time; None if their times cannot be cut.

        Parameters
        ----------
        ranges : int
            Most ranges that the profile will be asked for.
        """
        if not can_be_cut(self.order_type):
            return None
        return profile_order(order_frame(*self._tagged_inputs(), self.order_type), ranges)

    def known_bytes(self) -> tuple[int | None, int | None]:
        """Return Spark's estimates of the bytes of both inputs, where it has any."""
        sizes = estimated_bytes(self.left), estimated_bytes(self.right)
        left, right = (None if size >= NO_ESTIMATE else size for size in sizes)
        return left, right

    def tagged(self, placement: Placement) -> Tagged:
        """Return the tagged frame, placed as chosen; ranges of rows are counted out here."""
        if placement.stored is not None:
            return Tagged(placement.stored.frame(self.left.sparkSession), stored=placement.stored)
        if placement.rule is not None or placement.starts is not None:
            return self._cut(placement)
        left, right = self._tagged_inputs(placement.keys)
        return Tagged(
            tagged_frame(
                left,
                right,
                order_type=self.order_type,
                key_types=self._key_types(placement),
                partitions=placement.partitions,
                direct=placement.direct,
            )
        )

    def _cut(self, placement: Placement) -> Tagged:
        """Return the tagged frame in ranges of time."""
        left, right = self._tagged_inputs(placement.keys)
        order_type, query = self.order_type, self.query
        key_types = self._key_types(placement)
        times = order_frame(left, right, order_type, key_types)
        counts = None
        if placement.rule is not None:
            width = window_width(query, order_type)
            cuts = lazy_cuts(times, placement.rule, width, self._estimated_rows())
            ranges = placement.rule.ranges
        else:
            assert placement.starts is not None
            assert isinstance(query.window, CountWindow)  # others are cut when an action runs
            halos = count_halos(times, placement.starts, query.window.size, query.how)
            cuts, ranges, counts = Cuts((halos,)).literal(), len(halos.starts) + 1, halos.counts
        frame = tagged_ranges(
            left,
            right,
            order_type=order_type,
            key_types=key_types,
            cuts=cuts,
            ranges=ranges,
            partitions=placement.partitions,
            alone=query.is_timed and query.how is not JoinType.INNER,
        )
        return Tagged(frame, counts)

    def _key_types(self, placement: Placement) -> list[DataType]:
        return [
            common_type(self.left.schema[own].dataType, self.right.schema[other].dataType)
            for own, other in zip(*placement.keys, strict=True)
        ]

    def _estimated_rows(self) -> int | None:
        left, right = (estimated_rows(frame) for frame in (self.left, self.right))
        return None if left is None or right is None else left + right

    def _tagged_inputs(
        self, keys: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    ) -> tuple[TaggedInput, TaggedInput]:
        left, right = (
            TaggedInput(
                frame,
                self.query.time[side],
                keys[side],
                self.query.how.tracks(side) and not self.query.how.wants_matched,
            )
            for side, frame in zip(Side, (self.left, self.right), strict=True)
        )
        return left, right


# Columns of a frame that hold intervals: how long the longest one is, and what is refused.

_UNITS = {
    Kind.DATE: DAY,
    Kind.TIMESTAMP: 1_000,
    Kind.INSTANT: 1_000,
    Kind.DURATION: 1_000,
    Kind.TIME: 1,
}
"""Nanoseconds in a unit of the numbers that temporal columns are compared as."""


def longest_of(
    frames: tuple[DataFrame, DataFrame], intervals: tuple[tuple[str, str], tuple[str, str]]
) -> int | Duration:
    """Return the length of the longest interval of both frames, which Spark reads for that.

    Intervals without a start or an end, or that end before they start, do not count.
    """
    lengths = []
    for frame, names in zip(frames, intervals, strict=True):
        difference = _length(frame, names, None)
        rows, columns = _columns(frame, names)
        length = F.try_subtract(*(difference.number(column, 0) for column in columns))
        lengths.append(rows.agg(F.coalesce(F.max(length), F.lit(0)).alias("length")))
    row = lengths[0].crossJoin(lengths[1].withColumnRenamed("length", "other")).first()
    assert row is not None
    longest = max(0, int(row["length"]), int(row["other"]))
    unit = _UNITS.get(difference.types.left.kind)
    return longest if unit is None else Duration(longest * unit)


def _length(frame: DataFrame, names: tuple[str, str], longest: int | Duration | None) -> Difference:
    """Return the length of an interval as a difference that lies between zero and the longest."""
    start, end = names
    arrow = arrow_schema(frame.schema, "left")
    return difference_of(Term(end, start, 0, longest), (frame.schema, frame.schema), (arrow, arrow))


def _columns(frame: DataFrame, names: tuple[str, str]) -> tuple[DataFrame, tuple[Column, Column]]:
    """Return a frame in which Spark finds the end and the start of an interval, and these two."""
    rows, places = told_apart(frame)
    return rows, (F.col(places[names[1]]), F.col(places[names[0]]))


# The order columns of whole inputs, checked by Spark jobs where no device sees their rows pass.
#
# A device raises if a row has no place in time, or goes back in time although its input was
# declared sorted. Spark's own join knows neither rule, and the partitions of a join by key see
# disorder among their own rows only. So the checks run beside the join, as frames without rows
# that fail if they have to, and the answer is the union of both. Conditions inside the join would
# not do: Spark skips them with the rows that it need not read, such as those that stand opposite
# to an empty input.


def checked_by_rules(
    answer: DataFrame, left: DataFrame, right: DataFrame, query: Query
) -> DataFrame:
    """Return ``answer``, an answer of Spark itself, which fails where a task of this kit would.

    Takes what :func:`checked_for_nulls` and :func:`checked_for_disorder` take.
    """
    if query.sorted:
        answer = checked_for_disorder(answer, left, right, query)
    # Nulls are told first, as by a task.
    return checked_for_nulls(answer, left, right, query)


def checked_for_nulls(
    answer: DataFrame, left: DataFrame, right: DataFrame, query: Query
) -> DataFrame:
    """Return ``answer``, which fails if a row of an input has no place in time.

    The checks are the first partitions of the frame, so that reading a few rows runs them too. An
    input whose order column cannot hold nulls, by what Spark knows of it, is not checked.

    Parameters
    ----------
    answer : DataFrame
        The join of the inputs.
    left, right : DataFrame
        The inputs. Each is read once more, except for the parts that have no null by Parquet's
        statistics.
    query : Query
        Names the order columns.
    """
    checks = []
    for frame, side, order in _inputs(left, right, query):
        if frame.schema[order].nullable:
            null_row = _null_row(frame, order)
            first = null_row.columns.index("c0")
            check = partial(SideCheck, side, order, False, frame.columns, first)
            checks.append(_check(null_row, check, answer))
    return _behind(checks, answer)


def checked_for_disorder(
    answer: DataFrame, left: DataFrame, right: DataFrame, query: Query
) -> DataFrame:
    """Return ``answer``, which fails if a row of an input goes back in time.

    As with :func:`checked_for_nulls` the checks come first. Rows without a place in time are left
    out.

    Parameters
    ----------
    answer : DataFrame
        The join of the inputs.
    left, right : DataFrame
        The inputs. The order column of each is read once more.
    query : Query
        Names the order columns, and tells whether each partition of an input is sorted by itself.
    """
    checks = [
        _check(
            _suspects(frame, order),
            partial(SideCheck, side, order, True, (), 0, per_partition=query.per_partition),
            answer,
        )
        for frame, side, order in _inputs(left, right, query)
    ]
    return _behind(checks, answer)


def _inputs(
    left: DataFrame, right: DataFrame, query: Query
) -> Iterator[tuple[DataFrame, str, str]]:
    """Yield each input with the name of its side and its order column."""
    yield from zip((left, right), ("left", "right"), query.time, strict=True)


def _null_row(frame: DataFrame, order: str) -> DataFrame:
    """Return the first row without a place in time, whole, because the message shows it.

    Rows are numbered behind the filter: in front of it the number, which depends on where Spark
    reads a row, would keep Spark from handing the filter to the reader of the files.
    """
    # Columns are called by their places: no name of the user's can clash or need quoting.
    places = [f"c{index}" for index in range(len(frame.columns))]
    time = F.col(places[frame.columns.index(order)])
    nulls = frame.toDF(*places).where(time.isNull())
    numbered = nulls.select(F.monotonically_increasing_id().alias("row"), time.alias("order"), "*")
    return numbered.orderBy("row").limit(1)


def _suspects(frame: DataFrame, order: str) -> DataFrame:
    """Return few rows, sorted by time, whose numbers fall if any row goes back in time."""
    places = [f"c{index}" for index in range(len(frame.columns))]
    rows = frame.toDF(*places).select(
        F.monotonically_increasing_id().alias("row"),
        F.col(places[frame.columns.index(order)]).alias("order"),
    )
    rows = rows.where(F.col("order").isNotNull())
    suspects = rows.mapInArrow(splitjoin_order_suspects, rows.schema).repartition(1)
    return suspects.sortWithinPartitions("order", "row")


def _check(rows: DataFrame, make_check: Callable[[], SideCheck], answer: DataFrame) -> DataFrame:
    """Return a frame without rows, like ``answer``, which fails if ``rows`` break the rule."""

    def splitjoin_order_check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        check = make_check()
        for batch in in_utc(batches):
            check.see(batch, pa.array([True] * batch.num_rows))
        yield from ()

    return rows.mapInArrow(splitjoin_order_check, answer.schema)


def _behind(checks: list[DataFrame], answer: DataFrame) -> DataFrame:
    """Return ``answer`` behind its checks."""
    if checks:
        ship_packages(cluster_of(answer.sparkSession))
    return reduce(DataFrame.unionAll, [*checks, answer])


def splitjoin_order_suspects(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Leave as few rows as tell whether all of them are in order; Spark shows this in plans.

    These are the first and the last row of every batch, which say whether batches follow one
    another, and inside a batch the first row that is less than the one before.
    """
    for batch in batches:
        if not batch.num_rows:
            continue
        order = batch.column("order")
        fall = pc.index(pc.less(order[1:], order[:-1]), True).as_py()
        places = {0, batch.num_rows - 1}
        places |= {fall, fall + 1} if fall >= 0 else set()
        yield batch.take(pa.array(sorted(places)))
