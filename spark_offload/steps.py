# SPDX-License-Identifier: Apache-2.0
"""How many of many rising numbers a column has reached, as an expression that Spark compiles."""

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

__all__ = ["steps_reached"]


def steps_reached(number: Column, steps: Sequence[int]) -> Column:
    """Return how many of ``steps`` are at most ``number``: a binary search of nested conditions.

    Parameters
    ----------
    number : Column
        64-bit integers; nulls reach nothing.
    steps : sequence of int
        In rising order; some may be equal.
    """

    def between(low: int, high: int) -> Column:
        if low == high:
            return F.lit(low)
        middle = (low + high) // 2
        reached = number >= F.lit(steps[middle]).cast("long")
        return F.when(reached, between(middle + 1, high)).otherwise(between(low, middle))

    return between(0, len(steps))
