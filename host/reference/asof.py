# SPDX-License-Identifier: Apache-2.0
"""The reference joins of closest rows and of overlapping intervals: the oracles of their tests."""

from collections.abc import Hashable, Sequence
from typing import TypeAlias

from host.reference.types import NO_ROW, Direction

__all__ = [
    "Interval",
    "Keyed",
    "reference_asof",
    "reference_overlap",
]

# The reference as-of join: its meaning, and the oracle of its tests.
#
# Each left row gets at most one right row: one with an equal key whose time is closest to the
# row's own in the wanted direction (:class:`Direction`). Of several
# right rows with the same time, looking back finds the last one and looking ahead the first one,
# in input order. A right row that is further away than the tolerance is none. A null key equals
# nothing.
#
# The rows of both sides are walked in the order of time, and of each key the newest right row is
# kept, as an accelerator would do it.

#: The time and the key of a row; the key None is null.
Keyed: TypeAlias = tuple[int, Hashable]


def reference_asof(
    left: Sequence[Keyed],
    right: Sequence[Keyed],
    direction: Direction,
    *,
    tolerance: int | None = None,
    exact: bool = True,
) -> list[int]:
    """Return the number of the right row that each left row is joined with.

    Parameters
    ----------
    left, right : sequence of (int, hashable)
        Time and key of each row, in any order.
    direction : Direction
        Where to look.
    tolerance : int, optional
        Largest distance in time, in units of the times.
    exact : bool
        Whether a right row with the same time counts.

    Returns
    -------
    list of int
        One number for each left row, ``NO_ROW`` if there is no right row for it.
    """
    nothing = [NO_ROW] * len(left)
    back = _newest(left, right, exact) if direction.looks_back else nothing
    ahead = _mirrored(left, right, exact) if direction.looks_ahead else nothing
    found = []
    for (time, _), earlier, later in zip(left, back, ahead, strict=True):
        distances = [(abs(right[row][0] - time), row) for row in (earlier, later) if row != NO_ROW]
        # The earlier row stands first, and min() takes the first of equally close ones.
        distance, row = min(distances, key=lambda pair: pair[0], default=(0, NO_ROW))
        found.append(NO_ROW if tolerance is not None and distance > tolerance else row)
    return found


def _newest(left: Sequence[Keyed], right: Sequence[Keyed], exact: bool) -> list[int]:
    """Return, for each left row, the last right row of its key that came before it."""
    # On a tie, the side that comes first is the right one if it is to be found.
    sides = ((right, 0), (left, 1)) if exact else ((left, 1), (right, 0))
    arrivals = sorted(
        (time, turn, is_left, row)
        for turn, (rows, is_left) in enumerate(sides)
        for row, (time, _) in enumerate(rows)
    )
    newest: dict[Hashable, int] = {}
    found = [NO_ROW] * len(left)
    for _, _, is_left, row in arrivals:
        key = (left if is_left else right)[row][1]
        if key is None:
            continue
        if is_left:
            found[row] = newest.get(key, NO_ROW)
        else:
            newest[key] = row
    return found


def _mirrored(left: Sequence[Keyed], right: Sequence[Keyed], exact: bool) -> list[int]:
    """Return, for each left row, the first right row of its key that comes after it."""
    # Looking ahead is looking back in a time that runs backwards.
    mirror = [(-time, key) for time, key in left]
    turned = [(-time, key) for time, key in reversed(right)]
    last = len(right) - 1
    return [row if row == NO_ROW else last - row for row in _newest(mirror, turned, exact)]


# The reference join of intervals that overlap: its meaning, and the oracle of its tests.
#
# Two intervals overlap if neither ends before the other one starts. Intervals of which one ends
# where the other one starts touch; whether that counts is up to the caller. Pairs come by the
# start of the row that starts later, on a tie left before right, then by the start of the other
# row.

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
