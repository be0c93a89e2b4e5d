# SPDX-License-Identifier: Apache-2.0
"""The reference join of intervals that overlap: its meaning, and the oracle of its tests.

Two intervals overlap if neither ends before the other one starts. Intervals of which one ends where
the other one starts touch; whether that counts is up to the caller. Pairs come by the start of the
row that starts later, on a tie left before right, then by the start of the other row.
"""

from collections.abc import Hashable, Sequence
from typing import TypeAlias

__all__ = ["Interval", "reference_overlap"]

#: Start, end and key of a row; an end or a key that is None is null, and overlaps nothing.
Interval: TypeAlias = tuple[int, int | None, Hashable]


def reference_overlap(
    left: Sequence[Interval], right: Sequence[Interval], *, touching: bool = True
) -> list[tuple[int, int]]:
    """Return the row numbers of all pairs of a left and a right interval that overlap.

    Parameters
    ----------
    left, right : sequence of (int, int, hashable)
        Start, end and key of each row. Keys must be equal.
    touching : bool
        Whether intervals that only touch are a pair.
    """
    rows = (left, right)
    arrivals = sorted(
        (row[0], side, number) for side in (0, 1) for number, row in enumerate(rows[side])
    )
    open_rows: tuple[list[int], list[int]] = ([], [])
    pairs = []
    for start, side, number in arrivals:
        _, end, key = rows[side][number]
        others = rows[1 - side]
        # What has ended before this start meets nothing that starts later.
        still = []
        for other in open_rows[1 - side]:
            last = others[other][1]
            if last is not None and (last > start or (touching and last == start)):
                still.append(other)
        open_rows[1 - side][:] = still
        for other in still:
            begins_in_time = touching or (end is not None and others[other][0] < end)
            if end is not None and key is not None and key == others[other][2] and begins_in_time:
                pairs.append((number, other) if side == 0 else (other, number))
        open_rows[side].append(number)
    return pairs
