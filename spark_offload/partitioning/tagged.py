# SPDX-License-Identifier: Apache-2.0
"""Both inputs as one frame in the order of arrival, which is what a task reads."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
import math

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    LongType,
    TimestampNTZType,
    TimestampType,
)

from host.arrays import Int64s
from host.columns.kinds import integer_view
from host.query.quantities import Duration
from host.query.queries import Query
from host.query.words import Span
from host.reference.arrivals import Side
from host.reference.types import JoinType
from spark_offload.partitioning.columns import common_type, partition_key, told_apart

__all__ = [
    "ALONE_COLUMN",
    "HALO_COLUMNS",
    "LEAST",
    "LEFT",
    "PAYLOAD",
    "RIGHT",
    "ROW_BITS",
    "SHARED",
    "SLOTS",
    "TAG_COLUMNS",
    "TaggedInputs",
    "can_be_cut",
    "gauge_width",
    "literals",
    "order_integers",
    "order_length",
    "order_number",
    "source_of",
    "steps_reached",
    "window_width",
]

# Spark expression for the index of the range that a value falls into: a ``searchsorted``.


def steps_reached(name: str, steps: Sequence[str]) -> str:
    """Return in SQL how many of ``steps`` are at most the number: a binary search of conditions.

    Parameters
    ----------
    name : str
        Column of 64-bit integers; nulls reach nothing.
    steps : sequence of str
        Expressions of such integers, in rising order; some may be equal. A null, which nothing
        reaches, is followed by nulls only.
    """

    def between(low: int, high: int) -> str:
        if low == high:
            return str(low)
        middle = (low + high) // 2
        reached = f"`{name}` >= {steps[middle]}"
        return f"if({reached}, {between(middle + 1, high)}, {between(low, middle)})"

    return between(0, len(steps))


def literals(steps: Sequence[int]) -> list[str]:
    """Return steps as SQL has them; the least of all integers is no literal there."""
    return [f"cast('{step}' as bigint)" for step in steps]


_MOST_STEPS = 32
"""Steps of a search that Java still compiles well with all that surrounds it."""


def _with_steps_reached(
    rows: DataFrame, name: str, arrays: Mapping[str, str], count: int
) -> DataFrame:
    """Return rows with columns that say how many elements of arrays are at most a number.

    Parameters
    ----------
    rows : DataFrame
        The rows.
    name : str
        Their column of 64-bit integers; nulls reach nothing.
    arrays : mapping of str to str
        Expressions of rising arrays, by the names of the new columns.
    count : int
        Elements of an array, at most; those that it lacks are not reached.
    """
    # First the block of steps that the number lies in, then the place in the block. There is one
    # block if the steps are few.
    block = count + 1 if count <= _MOST_STEPS else math.isqrt(count) + 1

    def reached(array: str, first: str, places: Iterable[int]) -> str:
        return steps_reached(name, [f"get({array}, {first} + {place})" for place in places])

    ends = range(block - 1, count, block)
    blocks = {at: f"{block} * {reached(array, '0', ends)}" for at, array in arrays.items()}
    rows = rows.selectExpr("*", *(f"{sql} AS in_{at}" for at, sql in blocks.items()))
    places = range(min(count, block - 1))
    found = {at: reached(array, f"in_{at}", places) for at, array in arrays.items()}
    return rows.selectExpr("*", *(f"in_{at} + {sql} AS {at}" for at, sql in found.items()))


# The order columns as whole numbers, which ranges of time are cut by.

LEAST = -(1 << 63)
"""Not above any order number."""

_UNIT: dict[type[DataType], int] = {
    DateType: 86_400_000_000_000,
    TimestampType: 1_000,
    TimestampNTZType: 1_000,
    DayTimeIntervalType: 1_000,
}
"""Nanoseconds between two order numbers that follow each other."""


def can_be_cut(kind: DataType) -> bool:
    """Tell whether order columns of this common type can be cut into ranges."""
    return isinstance(kind, (LongType, BooleanType, DateType, TimestampType, TimestampNTZType))


def order_number(order: Column, kind: DataType) -> Column:
    """Return a column of 64-bit integers that stand as far apart as the times do.

    Parameters
    ----------
    order : Column
        Of the common type of both order columns.
    kind : DataType
        That type: one that :func:`can_be_cut`, or any of whole numbers, or of intervals.
    """
    if isinstance(kind, DateType):
        return F.unix_date(order).cast("long")
    if isinstance(kind, TimestampType):
        return F.unix_micros(order)
    if isinstance(kind, TimestampNTZType):
        # By way of the interval, as a cast to an instant would depend on the session's time zone.
        order = order - F.expr("timestamp_ntz'1970-01-01'")
    if isinstance(kind, (TimestampNTZType, DayTimeIntervalType)):
        return F.call_function("div", order, F.expr("interval '0.000001' second"))
    return order.cast("long")


def order_integers(column: pa.Array) -> Int64s:
    """Return the order numbers of a column that a task reads; it has no nulls."""
    return integer_view(column).astype(np.int64, copy=False)


def gauge_width(query: Query, kind: DataType) -> int | None:
    """Return the width of a window as a difference of the numbers that tasks read.

    None for a window of rows, and for order columns that tasks do not read as numbers.
    """
    is_number = isinstance(kind, (LongType, BooleanType, *_UNIT))
    return window_width(query, kind) if query.is_timed and is_number else None


def window_width(query: Query, kind: DataType) -> int:
    """Return the width of a time-based window as a difference of order numbers."""
    return order_length(query.width, kind)


def order_length(span: Span, kind: DataType) -> int:
    """Return a length of time as a difference of order numbers."""
    return span.nanoseconds // _UNIT[type(kind)] if isinstance(span, Duration) else span


# Both inputs as one frame in the order of arrival, which is what an accelerator reads.
#
# A row of the tagged frame is ``side, order, row``, then the left columns ``l0 l1 …`` and the
# right columns ``r0 r1 …``; the columns of the other side are null. If both sides have columns of
# the same types, they share the columns ``c0 c1 …`` instead: less to sort and to send. In a frame
# that is cut into ranges of time ``part, halo`` follow: the partition that the row was sent to,
# and whether it is there for the partition's own rows to meet only. If rows can come alone and
# the window is time-based, ``alone`` follows: whether the row leaves the window in the
# partition's range. Names are made up, so no name of the user's can clash or need quoting.

SLOTS = 1 << 10
"""Groups that the values of equal columns are counted in, to know those with too many rows."""

LEFT = 0
"""Value of ``side`` in the rows of the left input; it sorts before :data:`RIGHT` on a tie."""

RIGHT = 1
"""Value of ``side`` in the rows of the right input."""

ROW_BITS = 33
"""Bits of an input row's number that count within its partition or file."""

PAYLOAD = ("l", "r")
"""First letters of the names of left and of right columns."""

SHARED = "c"
"""First letter of the names of columns that both sides share."""

TAG_COLUMNS = ("side", "order", "row")
"""The columns before the payload, which are also what a partition is sorted by."""

HALO_COLUMNS = ("part", "halo")
"""The columns behind the payload, where rows are cut into ranges of time."""

ALONE_COLUMN = "alone"
"""The column behind these: whether the partition answers for the row if it comes alone."""


def source_of(number: int) -> tuple[int, int]:
    """Return the partition or file of an input row, and its number within that."""
    return number >> ROW_BITS, number & ((1 << ROW_BITS) - 1)


@dataclass(frozen=True)
class TaggedInputs:
    """Both inputs of a join, and how they become one frame in the order of arrival.

    Parameters
    ----------
    left, right : DataFrame
        The rows; frames checked to have the columns of the query.
    query : Query
        What is joined.
    keys : tuple of tuple of str
        Columns, left and right, that the rows are partitioned by; may be empty.
    """

    left: DataFrame
    right: DataFrame
    query: Query
    keys: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @cached_property
    def order_type(self) -> DataType:
        """Common type of the order columns."""
        return self._common_type(*self.query.time)

    def in_partitions(self, partitions: int, *, direct: bool = False) -> DataFrame:
        """Return the union of both sides, partitioned by the keys, each partition in arrival order.

        Input rows are numbered by :func:`~pyspark.sql.functions.monotonically_increasing_id`: not
        contiguous, but increasing in the order of the input's partitions and rows, which is all
        that a tie needs. The number depends on the input's partitions only, so a task that is run
        again numbers its rows as before, as long as the input itself comes in the same order again.

        Parameters
        ----------
        partitions : int
            Number of partitions; without keys there is one.
        direct : bool
            Whether the task of a single partition reads the inputs itself, without a shuffle.
        """
        rows, keys = self._united(), self._places
        rows = _by_arrival(rows.coalesce(1) if direct else rows.repartition(partitions, *keys))
        return rows.drop(*keys) if keys else rows

    def in_ranges(self, cuts: Column, ranges: int, partitions: int) -> DataFrame:
        """Return the union of both sides, cut into ranges of time, in arrival order.

        Without keys the partitions follow one another in time. A row goes to the partition of its
        range, and as a halo row to the following ones whose halos reach back to it. Rows with
        different keys may be cut at different times. A row without a time goes to the first range,
        to be complained of.

        Parameters
        ----------
        cuts : Column
            Where ranges and their halos begin (:data:`~spark_offload.partitioning.ranges.CUTS`).
        ranges : int
            How many ranges there are at most.
        partitions : int
            Number of partitions; those that have no range are empty.
        """
        rows, keys = self._united(), self._places
        passed = [name for name in rows.columns if name not in keys]
        slot = f"get(cuts.slots, {_slot(keys)})" if keys else "0"
        rows = rows.select("*", order_number(F.col("order"), self.order_type).alias("time"), cuts)
        # Behind a projection of its own, so that Spark asks for the cuts once, not for every step.
        rows = rows.selectExpr(
            *passed, "time", f"element_at(cuts.groups, 1 + coalesce({slot}, 0)) AS cut"
        )
        steps = {"own": "cut.starts", "last_left": "cut.left", "last_right": "cut.right"}
        behind = ["cut.first + place AS part", "place > own AS halo"]
        if self.query.is_timed and self.query.how is not JoinType.INNER:
            steps["leaves"] = "cut.departures"
            behind.append(f"place = leaves AS {ALONE_COLUMN}")
        rows = _with_steps_reached(rows, "time", steps, ranges - 1)
        last = f"if(side = {LEFT}, last_left, last_right)"
        rows = rows.selectExpr("*", f"explode(sequence(own, {last})) AS place")
        placed = rows.selectExpr(*passed, *behind)
        return _by_arrival(placed.repartitionById(partitions, F.col("part")))

    def times(self) -> DataFrame:
        """Return the columns ``side`` and ``time``, the order number, of the rows of both inputs.

        With keys there is ``slot`` too, one of :data:`SLOTS` groups of their values.
        """
        slot = [F.expr(f"CAST({_slot(self._places)} AS SMALLINT) AS slot")] if self._places else []
        time = order_number(F.col("order"), self.order_type).alias("time")
        left, right = (
            self._one_side(side, f"p{side}").select("side", time, *slot) for side in Side
        )
        return left.unionAll(right)

    @property
    def _places(self) -> list[str]:
        """Names of the key columns beside the tagged rows."""
        return [f"k{index}" for index in range(len(self.keys[LEFT]))]

    def _common_type(self, own: str, other: str) -> DataType:
        return common_type(self.left.schema[own].dataType, self.right.schema[other].dataType)

    def _united(self) -> DataFrame:
        """Return the rows of both sides, the columns of the other side null."""
        types = [[field.dataType for field in one.schema.fields] for one in (self.left, self.right)]
        letters = (SHARED, SHARED) if types[LEFT] == types[RIGHT] else PAYLOAD
        left, right = (self._one_side(side, letters[side]) for side in Side)
        if left.columns == right.columns:
            return left.unionAll(right)
        return left.unionByName(right, allowMissingColumns=True)

    def _one_side(self, side: Side, letter: str) -> DataFrame:
        """Return the rows of a side as rows of the tagged frame, still carrying the keys."""
        frame, names = told_apart((self.left, self.right)[side], letter)
        # In SQL, and in one step, as far as possible: every step of an expression in Python is a
        # trip to the JVM, and every step of a frame an analysis of its plan.
        order = names[self.query.time[side]]
        tags = (
            f"CAST({side.value} AS TINYINT) AS side",
            f"CAST({order} AS {self.order_type.simpleString()}) AS order",
            "monotonically_increasing_id() AS row",
        )
        payload = [f"{name} AS {letter}{index}" for index, name in enumerate(names.values())]
        if not self._places:
            return frame.selectExpr(*tags, *payload)
        keys = [
            partition_key(F.col(names[pair[side]]), self._common_type(*pair)).alias(place)
            for place, pair in zip(self._places, zip(*self.keys, strict=True), strict=True)
        ]
        rows = frame.select(*map(F.expr, tags), *keys, *map(F.expr, payload))
        how = self.query.how
        if how.tracks(side) and not how.wants_matched:
            return rows
        # A null key matches nothing; a null in the order column stays, to be complained of.
        for place in self._places:
            rows = rows.where(F.col(place).isNotNull() | F.col("order").isNull())
        return rows


def _slot(keys: Sequence[str]) -> str:
    return f"pmod(xxhash64({', '.join(keys)}), {SLOTS})"


def _by_arrival(placed: DataFrame) -> DataFrame:
    """Return a frame with each partition in the order of arrival."""
    # A column that is asked of the frame takes a trip to the JVM, one by its name fifteen.
    return placed.sortWithinPartitions(*(placed[name] for name in ("order", "side", "row")))
