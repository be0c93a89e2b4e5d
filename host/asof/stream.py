# SPDX-License-Identifier: Apache-2.0
"""The as-of join of rows that come in pieces: each left row leaves when no row can change it.

Between two pieces two things are kept: left rows that a row to come could still be joined with, and
right rows that a waiting left row or one to come could still be joined with.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.asof.matching import beyond, closest_rows
from host.asof.rows import joined_rows
from host.asof.sides import AsofSides, encode_sides, require_tolerance
from host.errors import UsageError
from host.query.asof_query import AsofQuery
from host.query.tables import output_schema
from host.reference.direction import Direction
from host.reference.join_type import NO_ROW, JoinType

__all__ = ["AsofStream"]

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

#: No time is later.
_END = (1 << 64) - 1


class AsofStream:
    """An as-of join whose rows come in pieces.

    Parameters
    ----------
    left, right : pa.Schema
        Columns of the inputs.
    query : AsofQuery
        The join.
    ordered : bool
        Whether results come in the order of the left rows' times. A row that can still change then
        holds up the later ones.
    backwards : bool
        Whether pieces come from the latest to the earliest, the rows of each in their usual order,
        and results too, the latest row first. This suits a join that looks ahead: in a time that
        runs backwards it looks back, so no row has to wait for a later one.

    Attributes
    ----------
    schema : pa.Schema
        Schema of the results: the left columns, then the right ones.
    waiting : pa.Table
        Left rows whose right row is not decided yet.
    kept : pa.Table
        Right rows that left rows can still be joined with.

    Raises
    ------
    UsageError
        If the query does not suit the columns.
    """

    def __init__(
        self,
        left: pa.Schema,
        right: pa.Schema,
        query: AsofQuery,
        *,
        ordered: bool = True,
        backwards: bool = False,
    ) -> None:
        if backwards and query.direction is not Direction.FORWARD:
            raise UsageError(
                f"Only a join that looks forward takes rows backwards, not {query.direction.value}."
            )
        require_tolerance(left, query)
        self.schema = output_schema(left, right, query.suffix, query.how)
        self.waiting = left.empty_table()
        self.kept = right.empty_table()
        self._query = query
        self._ordered = ordered
        self._backwards = backwards
        self._direction = Direction.BACKWARD if backwards else query.direction
        encode_sides(self.waiting, self.kept, query)  # raises if the columns do not suit

    def rows_in_order(self, left: pa.Table, right: pa.Table) -> pa.RecordBatch:
        """Take the next rows of inputs in the order of time; return what is decided.

        No row that comes later may have an earlier time than any row of this piece; or a later one,
        backwards.
        """
        return self._decide(left, right, lambda sides: max(map(_latest, sides.all_times)))

    def rows_until(self, left: pa.Table, right: pa.Table, time: object) -> pa.RecordBatch:
        """Take more rows in any order; return what is decided.

        No row that comes later may have an earlier time than ``time``, a value of the left column
        of time.
        """

        def reached(sides: AsofSides) -> int:
            # Rounded down, which decides later at worst. A time before all rows decides nothing.
            plan = sides.plan
            return (plan.ticks(time) - (plan.origin or 0)) // plan.divisor

        return self._decide(left, right, reached)

    def last_rows(self, left: pa.Table, right: pa.Table) -> pa.RecordBatch:
        """Take the last rows, in any order; return all that is left."""
        return self._decide(left, right, None)

    def _decide(
        self, left: pa.Table, right: pa.Table, reached: Callable[[AsofSides], int] | None
    ) -> pa.RecordBatch:
        """Join all rows at hand; return the decided ones, and keep what is needed of the others."""
        # In input order, which is what counts among rows of one time.
        turn = -1 if self._backwards else 1
        left = pa.concat_tables([self.waiting, left][::turn])
        right = pa.concat_tables([self.kept, right][::turn])
        sides = encode_sides(left, right, self._query)
        if self._backwards:
            sides = sides.mirrored()
        found = closest_rows(
            sides.left,
            sides.right,
            self._direction,
            tolerance=sides.tolerance,
            exact=self._query.allow_exact_matches,
        )
        time = _END if reached is None else min(reached(sides), _END)
        decided = np.ones(len(sides.row), np.bool_)
        if reached is not None:
            decided[sides.keyed] = self._decided(sides, found, time)
            if self._ordered:
                decided = np.logical_and.accumulate(decided)
        rows, numbers = sides.joined(found)
        given = decided & (numbers != NO_ROW) if self._query.how is JoinType.INNER else decided
        batch = joined_rows((left, right), (rows[given], numbers[given]), self.schema)
        self.waiting = left.take(pa.array(rows[~decided][::turn])).combine_chunks()
        kept = sides.right_row[:0]
        if reached is not None:
            kept = sides.right_row[self._needed(sides, ~decided[sides.keyed], time)]
        self.kept = right.take(pa.array(kept[::turn])).combine_chunks()
        return batch

    def _decided(self, sides: AsofSides, found: Int64s, reached: int) -> Bools:
        """Return which left rows no row at or after the time ``reached`` can change."""
        times = sides.left.time
        if reached < 0:
            return np.zeros(len(times), np.bool_)
        time = np.uint64(reached)
        # Whether a row to come is too late to be an earlier partner, or the same time's last one.
        passed = times < time if self._query.allow_exact_matches else times <= time
        if self._direction is Direction.BACKWARD:
            return passed
        # A row to come is at least so far ahead. Of equally far rows the one at hand stays.
        ahead = np.where(time > times, time - times, np.uint64(0))
        there = found != NO_ROW
        partner = sides.right.time[found[there]]
        own = times[there]
        settled = beyond(ahead, sides.tolerance)
        settled[there] = np.maximum(partner, own) - np.minimum(partner, own) <= ahead[there]
        return settled if self._direction is Direction.FORWARD else settled & passed

    def _needed(self, sides: AsofSides, waiting: Bools, reached: int) -> Int64s:
        """Return the right rows that waiting left rows and those to come can be joined with."""
        times = sides.right.time
        if reached < 0:
            return np.arange(len(times))
        # No left row that is still without its partner has an earlier time than this.
        least = np.uint64(min([reached, *sides.left.time[waiting].tolist()]))
        first = int(np.searchsorted(times, least))
        needed = np.zeros(len(times), np.bool_)
        needed[first:] = True
        if self._direction.looks_back and first:
            keys = sides.right.key
            before = np.zeros(first, np.int64) if keys is None else keys[:first]
            newest = np.full(int(before.max()) + 1, NO_ROW, np.int64)
            newest[before] = np.arange(first)  # of several rows of a key, the last one stays
            newest = newest[newest != NO_ROW]
            needed[newest] = ~beyond(least - times[newest], sides.tolerance)
        return np.flatnonzero(needed)


def _latest(times: UInt64s) -> int:
    """Return the latest time, -1 if there is none."""
    return int(times[-1]) if len(times) else -1
