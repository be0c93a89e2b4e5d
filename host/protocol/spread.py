# SPDX-License-Identifier: Apache-2.0
"""Known facts about the values of a key field, and the seeds of its hash."""

from dataclasses import dataclass

from host.reference.predicate import Bounds

__all__ = [
    "FIRST_SEEDS",
    "SEED_BITS",
    "Spread",
    "seeds",
    "tightened",
]

# Known facts about the values of a key field, and the tighter bounds that follow from them.


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


# The seeds of the hash of a key field, which an index engine's ingress computes.

SEED_BITS = 32

#: Seeds of choice 0. The accelerator has the same seeds after reset (``hdl/index/cells.py``).
FIRST_SEEDS = (
    0x9E3779B9, 0x6A09E667, 0xBB67AE85, 0xA54FF53A,
    0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
)  # fmt: skip

_MASK = (1 << 64) - 1


def seeds(choice: int, fields: int) -> tuple[int, ...]:
    """Return the seeds of ``fields`` key fields.

    Parameters
    ----------
    choice : int
        Zero for the seeds after reset, which spread evenly spaced keys evenly. Any other number
        gives unrelated seeds, which are the same in every call with that number.
    fields : int
        Number of key fields of the accelerator.
    """
    if not choice:
        return tuple(FIRST_SEEDS[n % len(FIRST_SEEDS)] for n in range(fields))
    return tuple(_mixed(choice << 32 | n) >> (64 - SEED_BITS) for n in range(fields))


def _mixed(number: int) -> int:
    """Return 64 bits that look random (the finalizer of splitmix64)."""
    number = (number * 0x9E3779B97F4A7C15) & _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)
