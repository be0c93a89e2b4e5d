# SPDX-License-Identifier: Apache-2.0
"""Aggregates of matches by their definition, one tuple after the other."""

__all__ = ["NaiveMatches"]


class NaiveMatches:
    """Lists of tuples, and nothing else.

    Parameters
    ----------
    band : tuple of int
        Bounds of ``r - s``.
    size, lifespan : int, optional
        Window of S: so many tuples, or so much time.
    """

    def __init__(self, band, *, size=None, lifespan=None):
        self.band, self.size, self.lifespan = band, size, lifespan
        self.stored = []

    def tuple(self, side, key, time, value):
        """Take a tuple; return its count, total, least and most if it is of R."""
        if side:
            self.stored.append((key, time, value))
            return None
        window = self.stored if self.size is None else self.stored[-self.size :]
        values = [
            stored
            for other, then, stored in window
            if self.band[0] <= key - other <= self.band[1]
            and (self.lifespan is None or time - then <= self.lifespan)
        ]
        least, most = min(values, default=None), max(values, default=None)
        return len(values), sum(values), least, most
