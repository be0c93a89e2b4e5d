# SPDX-License-Identifier: Apache-2.0
"""Known facts about the values of a key field, and the tighter bounds that follow from them."""

from dataclasses import dataclass

from host.reference.predicate import Bounds

__all__ = ["Spread", "tightened"]


@dataclass(frozen=True)
class Spread:
    """Range of the values of both sides in a key field, relative to the field's smallest value.

    Parameters
    ----------
    top : int
        Upper limit of the values.
    step : int
        A divisor of the difference of any two values.
    low : int
        Lower limit of the values.
    """

    top: int
    step: int = 1
    low: int = 0


def tightened(bounds: Bounds, spread: Spread | None) -> Bounds:
    """Return the tightest bounds that admit the same differences of such values.

    For example, multiples of 1,000 that differ by at most 10 are equal.
    """
    if spread is None or spread.step <= 1:
        return bounds
    step = spread.step
    return Bounds(
        None if bounds.low is None else -(-bounds.low // step) * step,
        None if bounds.high is None else bounds.high // step * step,
    )
