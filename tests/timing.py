# SPDX-License-Identifier: Apache-2.0
"""Processor time of what a test limits in time."""

from collections.abc import Callable
from time import process_time


def least_seconds(do: Callable[[], object], limit: float, turns: int = 5) -> float:
    """Return the least processor time of a call, in seconds, over at most so many turns.

    What takes too long by itself does so in each turn. A single turn also pays for what
    the worker does meanwhile: a collection of all its garbage takes a quarter of a second.
    The first turn within ``limit`` is the last.
    """
    least = float("inf")
    for _ in range(turns):
        began = process_time()
        do()
        least = min(least, process_time() - began)
        if least < limit:
            break
    return least
