# SPDX-License-Identifier: Apache-2.0
"""The as-of join of two tables, from Arrow to Arrow."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.asof.matching import Times, closest_rows
from host.device.software import SOFTWARE_MANIFEST
from host.encode import EncodedJoin, EncodedSide, encode
from host.encode.codes import Codes, combined, dense
from host.encode.contiguous import contiguous
from host.encode.kinds import column_type
from host.encode.scale import bound_in_ticks
from host.encode.times import require_temporal
from host.manifest import Manifest
from host.query.asof_query import AsofQuery
from host.query.tables import output_schema
from host.reference.asof import reference_asof
from host.reference.join_type import NO_ROW, JoinType
from host.reference.window import TimeWindow

__all__ = ["AsofJoin"]

Int64s = npt.NDArray[np.int64]

#: Rows in each batch of the result.
BATCH_ROWS = 1 << 16


class AsofJoin:
    """One as-of join of two tables, checked when it is made.

    Results come in the order of the left rows' times, and in input order where times are equal.

    Parameters
    ----------
    left, right : pa.Table
        The rows.
    query : AsofQuery
        The join.

    Attributes
    ----------
    schema : pa.Schema
        Schema of the result: the left columns, then the right ones.

    Raises
    ------
    UsageError
        If a column is missing, has a type that cannot be compared or that gives no order, holds a
        null or a decreasing time where it must not, or if the tolerance has the wrong unit.
    """

    def __init__(self, left: pa.Table, right: pa.Table, query: AsofQuery) -> None:
        self.query = query
        self.schema = output_schema(left.schema, right.schema, query.suffix, query.how)
        self._tables = (left, right)
        _require_tolerance(left.schema, query)
        # Key fields of 64 bits hold whatever can be compared.
        self._sides = _sides(encode(left, right, query.pairs, Manifest.load(SOFTWARE_MANIFEST)))

    @cached_property
    def rows(self) -> tuple[Int64s, Int64s]:
        """Row numbers of both tables in each result; ``NO_ROW`` for a missing right row."""
        left, right = self._sides.times
        found = closest_rows(
            left,
            right,
            self.query.direction,
            tolerance=self._sides.tolerance,
            exact=self.query.allow_exact_matches,
        )
        return self._numbered(found)

    def reference_rows(self) -> tuple[Int64s, Int64s]:
        """Return what :attr:`rows` should be, by the reference, which takes a row at a time."""
        left, right = (
            [(time, 0) for time in side.time.tolist()]
            if side.key is None
            else list(zip(side.time.tolist(), side.key.tolist(), strict=True))
            for side in self._sides.times
        )
        found = reference_asof(
            left,
            right,
            self.query.direction,
            tolerance=self._sides.tolerance,
            exact=self.query.allow_exact_matches,
        )
        return self._numbered(np.array(found, np.int64))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the result."""
        left, right = self.rows
        for begin in range(0, len(left), BATCH_ROWS):
            part = slice(begin, begin + BATCH_ROWS)
            columns = _taken(self._tables[0], left[part]) + _taken(self._tables[1], right[part])
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def table(self) -> pa.Table:
        """Return the result as a table."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def _numbered(self, found: Int64s) -> tuple[Int64s, Int64s]:
        """Return row numbers of the tables for the right tuple of every left tuple that has keys.

        Left rows with a null key come with no right row, or not at all.
        """
        sides = self._sides
        right = np.full(len(sides.row), NO_ROW, np.int64)
        there = found != NO_ROW
        matched = sides.left[there]
        right[matched] = sides.right_row[found[there]]
        if self.query.how is JoinType.INNER:
            return sides.row[matched], right[matched]
        return sides.row, right


@dataclass(frozen=True, eq=False)
class _Sides:
    """Both tables as times and keys.

    Parameters
    ----------
    row : array of int64
        Row numbers of the left table, by time.
    left : array of int64
        Which of these have a key that can be equal to another.
    right_row : array of int64
        Row numbers of the right rows that have such a key, by time.
    times : tuple of Times
        Of ``left`` and of ``right_row``.
    tolerance : int or None
        In units of the times.
    """

    row: Int64s
    left: Int64s
    right_row: Int64s
    times: tuple[Times, Times]
    tolerance: int | None


def _sides(encoded: EncodedJoin) -> _Sides:
    left, right = (_with_keys(side) for side in (encoded.left, encoded.right))
    keys = _keys(encoded, left, right)
    return _Sides(
        encoded.left.row,
        left,
        encoded.right.row[right],
        (
            Times(encoded.left.timestamp[left], keys and keys[0]),
            Times(encoded.right.timestamp[right], keys and keys[1]),
        ),
        encoded.window.lifespan if isinstance(encoded.window, TimeWindow) else None,
    )


def _with_keys(side: EncodedSide) -> Int64s:
    """Return which tuples of a side have no null in a key."""
    if side.valid is None:
        return np.arange(len(side))
    return np.flatnonzero(side.valid)


def _keys(encoded: EncodedJoin, left: Int64s, right: Int64s) -> tuple[Int64s, Int64s] | None:
    """Return keys that are equal where all key fields are, less than the number of rows."""
    fields = []
    for name, column in encoded.left.keys.items():
        pair = column[left], encoded.right.keys[name][right]
        fields.append(_dense(*(values.view(np.uint64) for values in pair)))
    if not fields:
        return None
    codes = combined(fields)
    if len(fields) > 1:
        codes = _dense(codes.left, codes.right)
    return codes.left.astype(np.int64), codes.right.astype(np.int64)


def _dense(left: npt.NDArray[np.uint64], right: npt.NDArray[np.uint64]) -> Codes:
    return dense(*(pa.chunked_array([pa.array(values)]) for values in (left, right)))


def _require_tolerance(left: pa.Schema, query: AsofQuery) -> None:
    """Raise if the tolerance is no length of the column of time."""
    on = column_type(left, query.on[0], "left")
    require_temporal(on)
    tolerance = query.pairs.window
    length = tolerance.lifespan if isinstance(tolerance, TimeWindow) else query.tolerance
    bound_in_ticks(length, on, on.tick, "The tolerance")


def _taken(table: pa.Table, numbers: Int64s) -> list[pa.Array]:
    """Return the columns of the given rows of a table, with nulls where there is no row."""
    missing = numbers == NO_ROW
    places = pa.array(numbers, mask=missing if missing.any() else None)
    return [contiguous(column) for column in table.take(places).columns]
