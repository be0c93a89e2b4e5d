# SPDX-License-Identifier: Apache-2.0
"""The rows of one side that a later row can still match, and whether each has matched."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from host.exact import UInt64s
from host.runtime import Columns
from host.streams.side_log import SideLog

__all__ = ["RowTimes", "TrackedRows"]

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowTimes:
    """Rows of one side as they are taken, those that are not sent included.

    Parameters
    ----------
    rows : array of int64
        Their numbers, rising.
    times : array of uint64
        Their timestamps, which never decrease.
    answered : array of bool or None
        Which of them belong to the answer if they come alone; None: all.
    """

    rows: Int64s
    times: UInt64s
    answered: Bools | None = None


class TrackedRows:
    """Rows in their order of arrival, from when they are taken until they leave the window.

    A bit of each row tells whether it has matched, so memory follows the window.
    """

    def __init__(self) -> None:
        self._log = SideLog()

    def add(self, taken: RowTimes) -> None:
        """Add the next rows; none of them has matched."""
        count = len(taken.rows)
        answered = np.ones(count, np.bool_) if taken.answered is None else taken.answered
        columns = {"row": taken.rows, "time": taken.times, "answered": answered}
        self._log.append(Columns({**columns, "matched": np.zeros(count, np.bool_)}))

    def mark(self, numbers: Int64s) -> None:
        """Rows of these numbers, which are here, have matched."""
        rows = self._part("row")
        first, last = int(rows[0]), int(rows[-1])
        dense = last - first + 1 == len(rows)
        at = numbers - first if dense else np.searchsorted(rows, numbers)
        self._part("matched")[at] = True

    @property
    def oldest(self) -> int | None:
        """Number of the first row; None if there is no row."""
        return int(self._log.at("row", self._log.kept)) if len(self) else None

    @property
    def first(self) -> int:
        """How many rows have left."""
        return self._log.kept

    def __len__(self) -> int:
        return self._log.count - self._log.kept

    @property
    def times(self) -> UInt64s:
        """Timestamps of the rows."""
        times: UInt64s = self._part("time")
        return times

    def leave(self, count: int) -> Columns:
        """Let go of the first ``count`` rows; return them, as ``row``, ``time``, ``answered`` and
        ``matched``."""
        names = ("row", "time", "answered", "matched")
        gone = Columns({name: self._part(name)[:count].copy() for name in names})
        self._log.forget(self._log.kept + count)
        return gone

    def _part(self, name: str) -> Any:
        if not self._log.has(name):
            return np.zeros(0, np.uint64)
        return self._log.part(name, self._log.kept, self._log.count)
