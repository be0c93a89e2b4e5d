# SPDX-License-Identifier: Apache-2.0
"""Which right rows each left row may match, as passes of a join aggregate.

A join aggregate shows a left tuple the right tuples that came before it, and are not too old. A
query asks for earlier and later rows. So each left row is sent late enough to come behind all of
its right rows, with a time from which the lifespan reaches back to the first of them.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from host.encode import EncodedJoin
from host.errors import AcceleratorLimitError, WindowOverflowError
from host.hardware.capacity import largest_window, side_label
from host.manifest import JoinAggregateManifest
from host.reference.exact import UInt64s
from host.reference.side import Side
from host.reference.window import CountWindow

__all__ = ["MatchPass", "passes_of"]

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class MatchPass:
    """Times with which each left row meets a range of right rows.

    A left row meets those right rows before it whose time is at most ``lifespan`` before its own.

    Parameters
    ----------
    stored : array of uint64
        Time of each right row, ascending.
    after : array of int64
        For each left row, the number of right rows that are sent before it, ascending.
    now : array of uint64
        Time of each left row.
    lifespan : int
    """

    stored: UInt64s
    after: Int64s
    now: UInt64s
    lifespan: int

    def of(self, right: Bools, left: Bools) -> "MatchPass":
        """Return the pass with some of the rows only."""
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(right)])
        return MatchPass(
            self.stored[right], before[self.after[left]], self.now[left], self.lifespan
        )

    def require_room(self, manifest: JoinAggregateManifest) -> None:
        """Raise unless the accelerator holds all right rows that a left row may meet.

        Raises
        ------
        WindowOverflowError
            If it has too few places; the error tells how many are needed.
        """
        needed, first = largest_window(self.stored, self.lifespan, manifest.capacity)
        if first is not None:
            raise WindowOverflowError(
                side_label(Side.S), manifest.capacity, first, needed=needed, cores=manifest.cores
            )


def passes_of(encoded: EncodedJoin, manifest: JoinAggregateManifest) -> list[MatchPass]:
    """Return the passes that together show each left row all right rows of the query's window.

    No right row is in two passes of a left row. A window of time takes one pass. One of rows takes
    two, because it reaches back by right rows and ahead by left rows: their numbers are the times.

    Raises
    ------
    AcceleratorLimitError
        If the times need more bits than the accelerator's timestamps have.
    """
    left, right = encoded.left.timestamp, encoded.right.timestamp
    window = encoded.window
    if not isinstance(window, CountWindow):
        # No difference of two times is greater than the greatest time.
        greatest = max((int(times[-1]) for times in (left, right) if len(times)), default=0)
        reach = min(int(window.lifespan), greatest)
        _require_bits(greatest + 2 * reach, manifest)
        now = left + np.uint64(reach)
        return [MatchPass(right, _places(right, now), now, 2 * reach)]
    size = min(int(window.size), len(left) + len(right) + 1)
    _require_bits(len(left) + len(right) + size, manifest)
    rows, others = np.arange(len(left)), np.arange(len(right))
    earlier = np.searchsorted(right, left, side="left").astype(np.int64)
    passed = np.searchsorted(left, right, side="right").astype(np.int64)  # left rows before each
    ahead = rows + size
    return [
        MatchPass(
            others.astype(np.uint64),
            earlier,
            np.maximum(earlier - 1, 0).astype(np.uint64),
            size - 1,
        ),
        MatchPass(
            passed.astype(np.uint64),
            np.searchsorted(passed, ahead, side="right").astype(np.int64),
            ahead.astype(np.uint64),
            size - 1,
        ),
    ]


def _places(times: UInt64s, now: UInt64s) -> Int64s:
    """Return how many times are at or before each of some others."""
    return np.searchsorted(times, now, side="right").astype(np.int64)


def _require_bits(greatest: int, manifest: JoinAggregateManifest) -> None:
    needed, bits = greatest.bit_length(), manifest.timestamp_bits
    if needed > bits:
        raise AcceleratorLimitError(
            f"To meet later rows too, left rows are sent behind them, with times of {needed} bits, "
            f"but the accelerator's timestamps have {bits}",
            f"generate it with --timestamp-bits {needed}, or use a coarser order column or a "
            f"smaller window",
        )
