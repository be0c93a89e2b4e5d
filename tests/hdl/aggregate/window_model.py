# SPDX-License-Identifier: Apache-2.0
"""Windowed aggregates by their definition."""

from dataclasses import dataclass, field
from functools import reduce

from host.expressions import evaluate

__all__ = ["Windows", "expected_windows"]


@dataclass(kw_only=True)
class Windows:
    """Windows of ``size`` panes that begin every ``advance`` panes of ``pane`` units of time.

    Attributes
    ----------
    tuples : list of (time, key, fields)
        Accepted so far.
    """

    pane: int
    size: int
    advance: int
    tuples: list = field(default_factory=list)

    def boundaries(self, time):
        """Return the right boundaries of the windows that hold a tuple of ``time``.

        A window begins at a multiple of the advance, which may be below zero, holds its left
        boundary, and does not hold the right one.
        """
        size, advance = self.size * self.pane, self.advance * self.pane
        last = time // advance * advance  # the left boundary of the latest window
        return [left + size for left in range(last, time - size, -advance)]


def reduced(rule, tuples):
    """Reduce tuples as a rule of an operator says."""
    states = [evaluate(rule.value, fields) for fields in tuples]
    return reduce(lambda a, b: evaluate(rule.combine, {"a": a, "b": b}), states)


def expected_windows(windows, *, cores, operator, until=1 << 40):
    """Return the results of all windows whose boundary is at most ``until``.

    Returns
    -------
    list
        ``(boundary, key, values)`` by boundary, core and key; and ``(boundary, None, ())`` for the
        star behind them.
    """
    content = {}
    for time, key, fields in windows.tuples:
        for boundary in windows.boundaries(time):
            if boundary <= until:
                content.setdefault(boundary, {}).setdefault(key, []).append(fields)
    results = []
    for boundary in sorted(content):
        keys = content[boundary]
        for key in sorted(keys, key=lambda key: (key % cores, key)):
            values = tuple(int(reduced(rule, keys[key])) for rule in operator.reductions)
            results.append((boundary, key, values))
        results.append((boundary, None, ()))
    return results
