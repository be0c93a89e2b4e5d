# SPDX-License-Identifier: Apache-2.0
"""Count-based and time-based windows."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from host.arrays import Int64s, UInt64s
from host.reference.arrivals import shifted

__all__ = [
    "CountWindow",
    "TimeWindow",
    "Window",
    "window_starts",
]


def _require_integer(value: object, least: int, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or int(value) < least:
        raise ValueError(f"{what} must be an integer of at least {least}, not {value!r}")


@dataclass(frozen=True)
class CountWindow:
    """The last ``size`` tuples of a side.

    Parameters
    ----------
    size : int
        Number of tuples, at least one.
    """

    size: int

    def __post_init__(self) -> None:
        _require_integer(self.size, 1, "Window size")


@dataclass(frozen=True)
class TimeWindow:
    """The tuples u of a side with ``t.timestamp - u.timestamp <= lifespan`` for the probe t.

    Parameters
    ----------
    lifespan : int
        Largest age of a tuple in units of the timestamp, at least zero.
    """

    lifespan: int

    def __post_init__(self) -> None:
        _require_integer(self.lifespan, 0, "Window lifespan")


Window: TypeAlias = CountWindow | TimeWindow


def window_starts(
    window: Window,
    before: Int64s,
    now: UInt64s | None = None,
    stored: UInt64s | None = None,
) -> Int64s:
    """Return the ordinal of the oldest tuple in the window that each observing tuple sees.

    Parameters
    ----------
    window : CountWindow or TimeWindow
        Window of the stored side.
    before : array of int64
        For each observer, the number of tuples of the stored side that arrived before it.
    now : array of uint64
        Timestamp of each observer, as :func:`host.reference.arrivals.places`; only for a time-based
        window.
    stored : array of uint64
        Timestamps of the stored side in the same form, ascending; only for a time-based window.

    Returns
    -------
    array of int64
        Values from 0 to ``before``; the window of observer i is ``starts[i] .. before[i] - 1``.
    """
    if isinstance(window, CountWindow):
        return np.maximum(before - window.size, 0)
    if now is None or stored is None:
        raise ValueError("A time-based window needs timestamps")
    oldest, _ = shifted(now, -int(window.lifespan))
    starts = np.searchsorted(stored, oldest, side="left").astype(np.int64)
    return np.minimum(starts, before)
