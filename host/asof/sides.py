# SPDX-License-Identifier: Apache-2.0
"""Two tables as the times and keys of an as-of join."""

from dataclasses import dataclass

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

    def numbered(self, found: Int64s) -> Int64s:
        """Return the row of the right table for each of ``row``, ``NO_ROW`` for none.

        Parameters
        ----------
        found : array of int64
            The tuple of ``right`` for each tuple of ``left``, ``NO_ROW`` for none.
        """
        numbers = np.full(len(self.row), NO_ROW, np.int64)
        there = found != NO_ROW
        numbers[self.keyed[there]] = self.right_row[found[there]]
        return numbers


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
        _dense(
            encoded.left.keys[name][keyed[0]].view(np.uint64),
            encoded.right.keys[name][keyed[1]].view(np.uint64),
        )
        for name in encoded.left.keys
    ]
    keys: tuple[Int64s | None, Int64s | None] = (None, None)
    if fields:
        codes = combined(fields)
        if len(fields) > 1:
            codes = _dense(codes.left, codes.right)
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


def _dense(left: UInt64s, right: UInt64s) -> Codes:
    return dense(*(pa.chunked_array([pa.array(values)]) for values in (left, right)))
