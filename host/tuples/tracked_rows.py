# SPDX-License-Identifier: Apache-2.0
"""The rows of one side that a later row can still match, with a flag for each that has matched."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from host.reference.exact import UInt64s
from host.runtime import Columns
from host.tuples.side_log import SideLog

__all__ = ["RowTimes", "TrackedRows"]

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowTimes:
    """Rows of one side as they are taken, including rows that are not sent.

    Parameters
    ----------
    rows : array of int64
        Row numbers, strictly ascending.
    times : array of uint64
        Timestamps, which never decrease.
    answered : array of bool or None
        Whether each row belongs to the result if it comes alone; None if all do.
    """

    rows: Int64s
    times: UInt64s
    answered: Bools | None = None


class TrackedRows:
    """Rows in their order of arrival, kept from when they are taken until they leave the window.

    A flag per row records whether it has matched, so memory depends on the window.
    """

    def __init__(self) -> None:
        self._log = SideLog()

    def add(self, taken: RowTimes) -> None:
        """Add the next rows, which have not matched."""
        count = len(taken.rows)
        answered = np.ones(count, np.bool_) if taken.answered is None else taken.answered
        columns = {"row": taken.rows, "time": taken.times, "answered": answered}
        self._log.append(Columns({**columns, "matched": np.zeros(count, np.bool_)}))

    def mark(self, numbers: Int64s) -> None:
        """Record that the rows of these numbers, which must be stored, have matched."""
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
        """Number of rows that have left."""
        return self._log.kept

    def __len__(self) -> int:
        return self._log.count - self._log.kept

    @property
    def times(self) -> UInt64s:
        """Timestamps of the stored rows."""
        times: UInt64s = self._part("time")
        return times

    def leave(self, count: int) -> Columns:
        """Remove the first ``count`` rows; return their row, time, answered and matched columns."""
        names = ("row", "time", "answered", "matched")
        gone = Columns({name: self._part(name)[:count].copy() for name in names})
        self._log.forget(self._log.kept + count)
        return gone

    def _part(self, name: str) -> Any:
        if not self._log.has(name):
            return np.zeros(0, np.uint64)
        return self._log.part(name, self._log.kept, self._log.count)
