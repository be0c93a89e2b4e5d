# SPDX-License-Identifier: Apache-2.0
"""Joins of intervals that overlap, which every path must answer alike."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
import random

import pyarrow as pa

from host.operators.overlap import overlap_query
from host.reference.types import JoinType
from tests.paths.cases import INT64, Case

__all__ = ["OVERLAPS", "OverlapCase", "overlapping_pairs", "random_overlap"]

#: Columns of the start and of the end.
Names = tuple[str, str]


@dataclass(frozen=True)
class OverlapCase:
    """A join of the rows of two tables whose intervals overlap.

    Parameters
    ----------
    name : str
        What is special about it.
    left, right : pa.Table
        The inputs.
    intervals : tuple of (str, str)
        Columns with the start and the end, of each side.
    by : tuple of (str, str)
        Columns that must be equal.
    touching : bool
        Whether intervals of which one ends where the other one starts overlap.
    how : str
        The type of the join.
    """

    name: str
    left: pa.Table
    right: pa.Table
    intervals: tuple[Names, Names] = (("b", "e"), ("b", "e"))
    by: tuple[tuple[str, str], ...] = ()
    touching: bool = True
    how: str = "inner"
    case: Case = field(init=False)
    """The same join by two bounded differences, which is how a device sees it."""

    def __post_init__(self) -> None:
        tables = (self.left, self.right)
        query = overlap_query(
            tables, *self.intervals, on=self.by, touching=self.touching, how=self.how
        )
        object.__setattr__(self, "case", Case(f"overlap: {self.name}", *tables, query))


def overlapping_pairs(overlap: OverlapCase) -> list[tuple[int, int]]:
    """Return the row numbers of all pairs, each looked at by itself, in the order of numbers."""
    (begin, end), (other_begin, other_end) = overlap.intervals

    def are_a_pair(left, right):
        ends = left[end], right[other_end]
        if None in ends or not all(left[own] == right[other] for own, other in overlap.by):
            return False
        if any(left[own] is None for own, _ in overlap.by):
            return False
        spans = (left[begin], right[other_end]), (right[other_begin], left[end])
        if overlap.touching:
            return all(first <= last for first, last in spans)
        return all(first < last for first, last in spans)

    lefts, rights = overlap.left.to_pylist(), overlap.right.to_pylist()
    return [
        (number, other)
        for number, left in enumerate(lefts)
        for other, right in enumerate(rights)
        if are_a_pair(left, right)
    ]


_TYPES = pa.int32(), pa.int64()


def _table(begins, ends, keys=None, types=_TYPES):
    columns = {"b": pa.array(begins, types[0]), "e": pa.array(ends, types[1])}
    if keys is not None:
        columns["k"] = pa.array(keys, pa.string())
    return pa.table({**columns, "n": list(range(len(begins)))})


_LEFT = _table([0, 3, 8, 8], [3, 9, 8, None], ["a", None, "b", "a"])
_RIGHT = _table([3, 9, 4, 20], [5, 9, 8, 21], ["a", "b", "b", "a"])


def _chosen():
    for how in JoinType:
        yield OverlapCase(f"ends that are null, {how}", _LEFT, _RIGHT, how=how.value)
    yield OverlapCase("only touching left out", _LEFT, _RIGHT, touching=False, how="full")
    yield OverlapCase("nulls in keys", _LEFT, _RIGHT, by=(("k", "k"),), how="left")
    yield OverlapCase(
        "points in intervals", _LEFT, _RIGHT, intervals=(("b", "e"), ("b", "b")), how="right"
    )
    yield OverlapCase("empty left", _LEFT.slice(0, 0), _RIGHT, how="full")
    far = _table([*INT64, -1], [INT64[0] + 1, INT64[1], 1], types=(pa.int64(), pa.int64()))
    yield OverlapCase("least and greatest integers", far, far, touching=False, how="full")
    days = [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 30)]
    dates = _table(days, [day + timedelta(1) for day in days], types=(pa.date32(), pa.date32()))
    yield OverlapCase("dates", dates, dates, touching=False, how="left_anti")


#: Chosen joins of intervals.
OVERLAPS = tuple(_chosen())


def random_overlap(seed: int, *, streams: bool = False) -> OverlapCase:
    """Return a random join of intervals; ``streams`` says that its inputs can be streams."""
    rng = random.Random(seed)
    temporal = streams or rng.random() < 0.5
    kind = pa.timestamp("us", "UTC") if temporal else pa.int64()
    first = datetime(1969, 12, 31, 23, 59, 50, tzinfo=UTC) if temporal else -20
    unit = timedelta(milliseconds=500) if temporal else 1
    tables = []
    for side in ("left", "right"):
        rows = rng.randint(12, 30) if streams else rng.choice([0, 1, 20, 30])
        begins = [first + rng.randint(0, 60) * unit for _ in range(rows)]
        ends = [
            None if rng.random() < 0.1 else begin + rng.choice([0, 1, 3, 9]) * unit
            for begin in begins
        ]
        keys = pa.array([rng.choice(["a", "b", None]) for _ in begins], pa.string())
        texts = pa.array([f"{side} {row}" for row in range(rows)], pa.string())
        tables.append(
            pa.table(
                {"b": pa.array(begins, kind), "e": pa.array(ends, kind), "k": keys, "n": texts}
            )
        )
    return OverlapCase(
        f"random {seed}",
        *tables,
        by=rng.choice([(), (("k", "k"),)]),
        touching=rng.random() < 0.5,
        how=rng.choice([how.value for how in JoinType]),
    )
