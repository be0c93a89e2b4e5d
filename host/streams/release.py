# SPDX-License-Identifier: Apache-2.0
"""When rows may be forgotten: as soon as no pair that is on its way means them."""

from collections import deque

from host.side import Side
from host.streams.row_store import Rows

__all__ = ["Release"]


class Release:
    """Lets go of rows once all pairs that could mean them have left the buffer behind a stream.

    A limit (rows below it are meant by no pair still to come) holds for what is decoded later. It
    is applied when everything that was handed on before has been consumed.

    Parameters
    ----------
    rows : tuple of Rows
        Of both sides.
    """

    def __init__(self, rows: tuple[Rows, Rows]) -> None:
        self._rows = rows
        self._limits = dict.fromkeys(Side, 0)
        self._produced = 0
        # Limits that wait, each until so many pairs have been consumed.
        self._waiting: deque[tuple[int, dict[Side, int]]] = deque()

    def allow(self, side: Side, before: int) -> None:
        """No pair that is decoded from now on means a row of ``side`` below ``before``."""
        self._limits[side] = before

    def produced(self, pairs: int) -> None:
        """So many pairs have been put into the buffer."""
        self._produced += pairs

    def handed_on(self) -> None:
        """All pairs that were decoded so far are in the buffer."""
        if self._waiting and self._waiting[-1][1] == self._limits:
            return
        if self._waiting and self._waiting[-1][0] == self._produced:
            self._waiting.pop()
        self._waiting.append((self._produced, dict(self._limits)))

    def consumed(self, waiting: int) -> None:
        """Apply what can be: so many pairs are in the buffer still."""
        while self._waiting and self._waiting[0][0] <= self._produced - waiting:
            _, limits = self._waiting.popleft()
            for side, before in limits.items():
                self._rows[side].forget(before)
