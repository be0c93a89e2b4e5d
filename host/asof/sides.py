# SPDX-License-Identifier: Apache-2.0
"""Two tables as the times and keys of an as-of join."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.asof.matching import Times
from host.device.software import SOFTWARE_MANIFEST
from host.encode import EncodedSide, encode
from host.encode.codes import Codes, combined, dense
from host.encode.kinds import column_type
from host.encode.scale import bound_in_ticks
from host.encode.times import TimePlan, require_temporal
from host.manifest import Manifest
from host.query.asof_query import AsofQuery
from host.reference.join_type import NO_ROW
from host.reference.window import TimeWindow

__all__ = ["AsofSides", "encode_sides", "require_tolerance"]

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
#: Integers of 64 bits.
AnyInts = npt.NDArray[np.int64] | npt.NDArray[np.uint64]

_LAST = np.uint64((1 << 64) - 1)


@dataclass(frozen=True, eq=False)
class AsofSides:
    """Two tables as times and keys.

    A row with a null in a key is joined with nothing. Such rows have no key here.

    Parameters
    ----------
    row : array of int64
        Row numbers of the left table, in the order of time.
    keyed : array of int64
        Positions in ``row`` of the rows with a key.
    right_row : array of int64
        Row numbers of the right rows with a key, in the order of time.
    left, right : Times
        Times and keys of ``row[keyed]`` and of ``right_row``.
    all_times : tuple of array of uint64
        Times of all rows of either table, in the order of time.
    tolerance : int or None
        Largest distance, in units of the times.
    plan : TimePlan
        How values of the columns become times.
    """

    row: Int64s
    keyed: Int64s
    right_row: Int64s
    left: Times
    right: Times
    all_times: tuple[UInt64s, UInt64s]
    tolerance: int | None
    plan: TimePlan

    def mirrored(self) -> "AsofSides":
        """Return the same rows in a time that runs backwards, so that looking ahead looks back.

        Rows of one time are in the opposite order too.
        """

        def turned(times: Times) -> Times:
            keys = None if times.key is None else times.key[::-1]
            return Times(_LAST - times.time[::-1], keys)

        return replace(
            self,
            row=self.row[::-1],
            keyed=(len(self.row) - 1 - self.keyed)[::-1],
            right_row=self.right_row[::-1],
            left=turned(self.left),
            right=turned(self.right),
            all_times=(_LAST - self.all_times[0][::-1], _LAST - self.all_times[1][::-1]),
        )

    def joined(self, found: Int64s, first: int = 0) -> tuple[Int64s, Int64s]:
        """Return the rows of the left table up to where these tuples end, and their right rows.

        Rows without a key come before the next row that has one.

        Parameters
        ----------
        found : array of int64
            The tuple of ``right`` for some consecutive tuples of ``left``, ``NO_ROW`` for none.
        first : int
            The first of these tuples. The rows up to it have been returned.
        """
        end = first + len(found)
        begins = int(self.keyed[first]) if first else 0
        ends = int(self.keyed[end]) if end < len(self.keyed) else len(self.row)
        numbers = np.full(ends - begins, NO_ROW, np.int64)
        there = found != NO_ROW
        numbers[self.keyed[first:end][there] - begins] = self.right_row[found[there]]
        return self.row[begins:ends], numbers


def encode_sides(left: pa.Table, right: pa.Table, query: AsofQuery) -> AsofSides:
    """Return the times and keys of two tables.

    Raises
    ------
    UsageError
        If the query does not suit the tables; see :class:`host.asof.join.AsofJoin`.
    """
    # Key fields of 64 bits hold whatever can be compared.
    encoded = encode(left, right, query.pairs, Manifest.load(SOFTWARE_MANIFEST))
    keyed = _with_keys(encoded.left), _with_keys(encoded.right)
    fields = [
        _numbered(encoded.left.keys[name][keyed[0]], encoded.right.keys[name][keyed[1]])
        for name in encoded.left.keys
    ]
    keys: tuple[Int64s | None, Int64s | None] = (None, None)
    if fields:
        codes = combined(fields)
        if len(fields) > 1:
            codes = _numbered(codes.left, codes.right)
        keys = codes.left.astype(np.int64), codes.right.astype(np.int64)
    times = encoded.left.timestamp, encoded.right.timestamp
    return AsofSides(
        encoded.left.row,
        keyed[0],
        encoded.right.row[keyed[1]],
        Times(times[0][keyed[0]], keys[0]),
        Times(times[1][keyed[1]], keys[1]),
        times,
        encoded.window.lifespan if isinstance(encoded.window, TimeWindow) else None,
        encoded.times,
    )


def require_tolerance(left: pa.Schema, query: AsofQuery) -> None:
    """Raise if the tolerance is no length of the left column of time.

    Raises
    ------
    UsageError
        If a number is given for a temporal column, or a duration for another one.
    """
    on = column_type(left, query.on[0], "left")
    require_temporal(on)
    window = query.pairs.window
    length = window.lifespan if isinstance(window, TimeWindow) else query.tolerance
    bound_in_ticks(length, on, on.tick, "The tolerance")


def _with_keys(side: EncodedSide) -> Int64s:
    """Return which tuples of a side have no null in a key."""
    if side.valid is None:
        return np.arange(len(side))
    return np.flatnonzero(side.valid)


def _numbered(left: AnyInts, right: AnyInts) -> Codes:
    """Return codes that are less than the number of values, which may mean counting the distinct.

    Values that lie close enough together are their own codes, but for the least one.
    """
    least = min((int(values.min()) for values in (left, right) if len(values)), default=0)
    most = max((int(values.max()) for values in (left, right) if len(values)), default=0)
    if most - least < len(left) + len(right):
        low = left.dtype.type(least)
        return Codes((left - low).view(np.uint64), (right - low).view(np.uint64), most - least + 1)
    return dense(
        *(pa.chunked_array([pa.array(values.view(np.uint64))]) for values in (left, right))
    )
