# SPDX-License-Identifier: Apache-2.0
"""What is known of the values of a key field, and what follows for bounds of their difference."""

from dataclasses import dataclass

from host.predicate import Bounds

__all__ = ["Spread", "tightened"]


@dataclass(frozen=True)
class Spread:
    """Values of both sides in one key field, counted from the least value of the field.

    Parameters
    ----------
    top : int
        No value is greater.
    step : int
        Divides the difference of any two values.
    low : int
        No value is less.
    """

    top: int
    step: int = 1
    low: int = 0


def tightened(bounds: Bounds, spread: Spread | None) -> Bounds:
    """Return the tightest bounds that admit the same differences of such values.

    Multiples of 1,000 that differ by ten at most are equal.
    """
    if spread is None or spread.step <= 1:
        return bounds
    step = spread.step
    return Bounds(
        None if bounds.low is None else -(-bounds.low // step) * step,
        None if bounds.high is None else bounds.high // step * step,
    )
