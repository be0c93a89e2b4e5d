# SPDX-License-Identifier: Apache-2.0
"""A task's own time, without that in which it waits for Spark."""

from collections.abc import Iterator
import time
from typing import TypeVar

__all__ = ["Stopwatch"]

Item = TypeVar("Item")


class Stopwatch:
    """Counts seconds from when it is made, except those that are somebody else's.

    The generators of a task take turns with Spark: one waits until Spark has sorted and sent the
    next batch, the other while Spark takes away what it was given.
    """

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._elsewhere = 0.0

    @property
    def seconds(self) -> float:
        """Own seconds so far."""
        return time.perf_counter() - self._started - self._elsewhere

    def reading(self, items: Iterator[Item]) -> Iterator[Item]:
        """Yield ``items``; the time in which they are made is not counted."""
        while True:
            asked = time.perf_counter()
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                self._elsewhere += time.perf_counter() - asked
            yield item

    def giving(self, items: Iterator[Item]) -> Iterator[Item]:
        """Yield ``items``; the time until the next one is asked for is not counted."""
        for item in items:
            given = time.perf_counter()
            try:
                yield item
            finally:
                self._elsewhere += time.perf_counter() - given
