# SPDX-License-Identifier: Apache-2.0
"""Forget rows as soon as no pair that is under way refers to them."""

from collections import deque

from host.reference.side import Side
from host.tuples.row_store import Rows

__all__ = ["Release"]


class Release:
    """Forgets rows once all pairs that could refer to them have left the buffer behind a stream.

    A limit says that no pair decoded later refers to a row below it. The limit is applied when all
    pairs that were handed on before have been consumed.

    Parameters
    ----------
    rows : tuple of Rows
        Stores of the rows of both sides.
    """

    def __init__(self, rows: tuple[Rows, Rows]) -> None:
        self._rows = rows
        self._limits = dict.fromkeys(Side, 0)
        self._produced = 0
        # Limits that wait, each with the number of pairs that must be consumed first.
        self._waiting: deque[tuple[int, dict[Side, int]]] = deque()

    def allow(self, side: Side, before: int) -> None:
        """Declare that no pair decoded from now on refers to a row of ``side`` below ``before``."""
        self._limits[side] = before

    def produced(self, pairs: int) -> None:
        """Record that ``pairs`` pairs were put into the buffer."""
        self._produced += pairs

    def handed_on(self) -> None:
        """Record that all pairs decoded so far are in the buffer."""
        if self._waiting and self._waiting[-1][1] == self._limits:
            return
        if self._waiting and self._waiting[-1][0] == self._produced:
            self._waiting.pop()
        self._waiting.append((self._produced, dict(self._limits)))

    def consumed(self, waiting: int) -> None:
        """Apply the limits that are due when ``waiting`` pairs are still in the buffer."""
        while self._waiting and self._waiting[0][0] <= self._produced - waiting:
            _, limits = self._waiting.popleft()
            for side, before in limits.items():
                self._rows[side].forget(before)
