# SPDX-License-Identifier: Apache-2.0
"""Spark expression for the index of the range that a value falls into: a ``searchsorted``."""

from collections.abc import Sequence

__all__ = ["elements", "literals", "steps_reached"]


def steps_reached(name: str, steps: Sequence[str]) -> str:
    """Return in SQL how many of ``steps`` are at most the number: a binary search of conditions.

    Parameters
    ----------
    name : str
        Column of 64-bit integers; nulls reach nothing.
    steps : sequence of str
        Expressions of such integers, in rising order; some may be equal. A null, which nothing
        reaches, is followed by nulls only.
    """

    def between(low: int, high: int) -> str:
        if low == high:
            return str(low)
        middle = (low + high) // 2
        reached = f"`{name}` >= {steps[middle]}"
        return f"if({reached}, {between(middle + 1, high)}, {between(low, middle)})"

    return between(0, len(steps))


def literals(steps: Sequence[int]) -> list[str]:
    """Return steps as SQL has them; the least of all integers is no literal there."""
    return [f"cast('{step}' as bigint)" for step in steps]


def elements(array: str, count: int) -> list[str]:
    """Return the first elements of an array as SQL has them; null where it has fewer."""
    return [f"get({array}, {place})" for place in range(count)]
