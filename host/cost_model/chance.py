# SPDX-License-Identifier: Apache-2.0
"""Means of what varies from pass to pass and from core to core."""

import math

__all__ = ["mean_of_larger", "mean_of_largest", "mean_overflow"]


def mean_of_larger(level: float, mean: float, deviation: float) -> float:
    """Return the mean of the larger one of ``level`` and a normal variable."""
    if deviation <= 0:
        return max(level, mean)
    z = (mean - level) / deviation
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    below = (1 + math.erf(z / math.sqrt(2))) / 2
    return level + deviation * (density + z * below)


def mean_overflow(count: float, room: float) -> tuple[float, float]:
    """Return mean and deviation of how much a Poisson variable is above ``room``."""
    deviation = math.sqrt(count)
    if not deviation:
        return 0.0, 0.0
    z = (count - room) / deviation
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    below = (1 + math.erf(z / math.sqrt(2))) / 2
    mean = deviation * (density + z * below)
    square = deviation**2 * ((z * z + 1) * below + z * density)
    return mean, math.sqrt(max(0.0, square - mean**2))


def mean_of_largest(mean: float, count: int) -> float:
    """Return the mean of the largest of ``count`` Poisson variables."""
    if mean <= 0:
        return 0.0
    total, term, at_most = 0.0, math.exp(-mean), math.exp(-mean)
    for n in range(1, math.ceil(mean + 10 * math.sqrt(mean) + 20)):
        total += 1 - at_most**count
        term *= mean / n
        at_most = min(1.0, at_most + term)
    return total
