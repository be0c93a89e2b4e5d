# SPDX-License-Identifier: Apache-2.0
"""Segments of a join: from which tuple on which cores store, told before or while the join runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["ListedSegments", "Segment", "SegmentSchedule"]


@dataclass(frozen=True)
class Segment:
    """A stretch of tuples that the same cores store in turn.

    Parameters
    ----------
    after : int
        Tuples of both sides that come before it, in their order of arrival. Rows that match
        nothing, such as those with a null in a compared column, may not count, as they are not
        sent.
    cores : tuple of int
        The cores that store from then on, in the order of their turns.
    """

    after: int
    cores: tuple[int, ...]


class SegmentSchedule(Protocol):
    """What decides the segments of a join, while it runs."""

    def next(self, staged: int) -> Segment | None:
        """Return the segment that comes next, or None if nothing is decided yet.

        The driver asks before it stages tuples, and again once a segment has begun. It asks no more
        while a segment that it knows has not begun. A segment whose place has passed begins with
        the next tuple that is staged.

        Parameters
        ----------
        staged : int
            Tuples of both sides that have been staged.
        """


class ListedSegments:
    """A schedule whose segments are known beforehand.

    Parameters
    ----------
    segments : sequence of (int, sequence of int)
        ``after`` and ``cores`` of each :class:`Segment`, in order.
    """

    def __init__(self, segments: Sequence[tuple[int, Sequence[int]]]) -> None:
        self._rest: Iterator[Segment] = iter(
            [Segment(after, tuple(cores)) for after, cores in segments]
        )

    def next(self, staged: int) -> Segment | None:
        """Return the next segment; None after the last one."""
        return next(self._rest, None)
