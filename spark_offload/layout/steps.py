# SPDX-License-Identifier: Apache-2.0
"""How many of many rising numbers a column has reached, as an expression that Spark compiles."""

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

__all__ = ["steps_reached"]


def steps_reached(name: str, steps: Sequence[int]) -> Column:
    """Return how many of ``steps`` are at most the number: a binary search of nested conditions.

    Parameters
    ----------
    name : str
        Column of 64-bit integers; nulls reach nothing.
    steps : sequence of int
        In rising order; some may be equal.
    """

    def between(low: int, high: int) -> str:
        if low == high:
            return str(low)
        middle = (low + high) // 2
        # As text, since the least of all numbers is no literal.
        reached = f"`{name}` >= cast('{steps[middle]}' as bigint)"
        return f"if({reached}, {between(middle + 1, high)}, {between(low, middle)})"

    return F.expr(between(0, len(steps)))
