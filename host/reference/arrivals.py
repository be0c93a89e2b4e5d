# SPDX-License-Identifier: Apache-2.0
"""The inputs of a join: its sides, exact 64-bit columns, and the order of arrival."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from host.arrays import Array, Bools, Int64s, UInt64s
from host.errors import OrderError, UsageError

__all__ = [
    "Arrivals",
    "Side",
    "as_integers",
    "places",
    "shifted",
]

# The two input streams.


class Side(IntEnum):
    """One of the two input streams; on a tie of timestamps R arrives before S."""

    R = 0
    S = 1

    @property
    def other(self) -> "Side":
        """The side whose window a tuple of this side probes."""
        return Side(1 - self)


# Exact arithmetic on 64-bit columns.
#
# Differences of 64-bit values need 65 bits, which NumPy does not support. Therefore the kit
# compares *places*: unsigned numbers in the same order as the values, which can be shifted by a
# constant with saturation.

_TOP = (1 << 64) - 1
_SIGN = np.uint64(1 << 63)


def as_integers(values: npt.ArrayLike) -> Int64s | UInt64s:
    """Return ``values`` as a contiguous array of int64, or of uint64 if they are unsigned.

    Raises
    ------
    TypeError
        If the values are not integers.
    """
    array = np.asarray(values)
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.int64)
    if array.dtype.kind not in "biu":
        raise TypeError(f"Values must be integers, not {array.dtype}")
    if array.dtype.kind == "u":
        return np.ascontiguousarray(array, dtype=np.uint64)
    return np.ascontiguousarray(array, dtype=np.int64)


def places(values: npt.ArrayLike) -> UInt64s:
    """Return unsigned numbers in the same order, and at the same distances, as ``values``."""
    array = as_integers(values)
    if array.dtype == np.uint64:
        return array.view(np.uint64)
    return array.view(np.uint64) ^ _SIGN


def shifted(at: UInt64s, by: int) -> tuple[UInt64s, Bools]:
    """Add ``by``, any integer, to every place.

    Returns
    -------
    places : array of uint64
        The sums, saturated at both ends.
    beyond : array of bool
        Whether the true sum lies outside 64 bits.
    """
    step = np.uint64(min(abs(by), _TOP))
    if by >= 0:
        beyond = at > np.uint64(_TOP) - step
        moved = np.where(beyond, np.uint64(_TOP), at + step)
    else:
        beyond = at < step
        moved = np.where(beyond, np.uint64(0), at - step)
    if abs(by) > _TOP:
        beyond = np.ones_like(beyond)
        moved = np.full_like(at, _TOP if by > 0 else 0)
    return moved, beyond


# Two streams as one sequence of tuples in the order of arrival.

Columns = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Tuples of both sides in the order of their arrival.

    Parameters
    ----------
    side : array of uint8
        Side of each tuple.
    keys : mapping of str to array of int64 or uint64
        Key fields, each as long as ``side``. Narrower integers are widened.
    timestamp : array of int64 or uint64, optional
        Timestamps, which never decrease. Time-based windows need them.

    Raises
    ------
    UsageError
        If lengths differ, or a column does not hold integers.
    OrderError
        If a timestamp is less than the one before it.
    """

    side: npt.NDArray[np.uint8]
    keys: Columns
    timestamp: Array | None = None

    def __post_init__(self) -> None:
        side = np.ascontiguousarray(self.side, dtype=np.uint8)
        if side.ndim != 1 or (side.size and int(side.max()) > 1):
            raise UsageError("Array 'side' must be one-dimensional and hold 0 (R) and 1 (S) only.")
        object.__setattr__(self, "side", side)
        keys = {name: _column(name, column, len(side)) for name, column in self.keys.items()}
        object.__setattr__(self, "keys", keys)
        if self.timestamp is not None:
            timestamp = _column("timestamp", self.timestamp, len(side))
            object.__setattr__(self, "timestamp", timestamp)
            _require_ascending("timestamp", timestamp)

    def __len__(self) -> int:
        return len(self.side)

    @classmethod
    def merge(
        cls,
        r_keys: Columns,
        s_keys: Columns,
        r_timestamp: npt.ArrayLike,
        s_timestamp: npt.ArrayLike,
    ) -> "Arrivals":
        """Merge two streams that are sorted by time; on a tie R arrives first.

        Raises
        ------
        OrderError
            If a stream is not sorted.
        """
        r_time, s_time = as_integers(r_timestamp), as_integers(s_timestamp)
        _require_ascending(Side.R, r_time)
        _require_ascending(Side.S, s_time)
        if len(r_time) and len(s_time) and r_time.dtype != s_time.dtype:
            raise UsageError("The timestamps of both sides must have the same signedness.")
        time = np.concatenate([r_time, s_time]) if len(s_time) else r_time
        time = time if len(r_time) else s_time
        order = np.argsort(places(time), kind="stable")
        side = np.repeat(np.array([0, 1], np.uint8), [len(r_time), len(s_time)])
        keys = {
            name: np.concatenate([as_integers(r_keys[name]), as_integers(s_keys[name])])[order]
            for name in r_keys
        }
        return cls(side[order], keys, time[order])

    @property
    def ordinals(self) -> Int64s:
        """Number of each tuple within its own side, counted from 0."""
        after_s = np.cumsum(self.side, dtype=np.int64)
        after_r = np.arange(1, len(self) + 1, dtype=np.int64) - after_s
        return np.where(self.side == Side.S, after_s, after_r) - 1


def _column(name: str, values: npt.ArrayLike, length: int) -> Array:
    try:
        column = as_integers(values)
    except TypeError as error:
        raise UsageError(f"Column {name!r}: {error}.") from error
    if column.shape != (length,):
        raise UsageError(f"Column {name!r} has shape {column.shape}, not ({length},).")
    return column


def _require_ascending(where: object, time: Array) -> None:
    falls = time[1:] < time[:-1]
    if falls.any():
        at = int(np.argmax(falls))
        raise OrderError.disorder(where, at + 1, int(time[at]), int(time[at + 1]))
