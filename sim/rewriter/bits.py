# SPDX-License-Identifier: Apache-2.0
"""Bits of a netlist: a sequence of runs of signal bits and constants."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

__all__ = ["NOTHING", "Bits", "Run"]


class Run(NamedTuple):
    """Neighbouring bits of a signal, from bit ``low`` up.

    If ``name`` is None, the bits are constant and ``low`` is their value.
    """

    name: str | None
    low: int
    width: int

    def part(self, low, width):
        """Return ``width`` bits of this run, from bit ``low`` up."""
        if self.name is None:
            return Run(None, self.low >> low & (1 << width) - 1, width)
        return Run(self.name, self.low + low, width)

    def followed_by(self, above):
        """Return this run and the run ``above`` as one run; None if they cannot be joined."""
        if self.name != above.name:
            return None
        if self.name is None:
            return Run(None, self.low | above.low << self.width, self.width + above.width)
        if self.low + self.width != above.low:
            return None
        return Run(self.name, self.low, self.width + above.width)


@dataclass(frozen=True)
class Bits:
    """A sequence of bits, as the smallest number of runs.

    Parameters
    ----------
    runs : tuple of Run
        Runs, the lowest first. Use :meth:`of`, which joins neighbouring runs where possible.
    """

    runs: tuple

    @classmethod
    def of(cls, runs):
        """Return the bits of any runs, which are given the lowest first."""
        found = []
        for run in runs:
            both = found[-1].followed_by(run) if found else None
            if both:
                found[-1] = both
            else:
                found.append(run)
        return cls(tuple(found))

    @classmethod
    def whole(cls, name, width):
        """Return all bits of a signal."""
        return cls((Run(name, 0, width),))

    @classmethod
    def constant(cls, value, width):
        """Return constant bits."""
        return cls((Run(None, value, width),))

    @cached_property
    def width(self):
        """Number of bits."""
        return sum(run.width for run in self.runs)

    @cached_property
    def names(self):
        """Names of the signals that the bits belong to."""
        return frozenset(run.name for run in self.runs if run.name is not None)

    @property
    def value(self):
        """Value of the bits if all of them are constant; otherwise None."""
        return self.runs[0].low if len(self.runs) == 1 and not self.names else None

    def part(self, low, width):
        """Return ``width`` of these bits, from bit ``low`` up."""
        found, start, end = [], 0, low + width
        for run in self.runs:
            first, last = max(low, start), min(end, start + run.width)
            if first < last:
                found.append(run.part(first - start, last - first))
            start += run.width
        return Bits.of(found)

    def substitute(self, sources):
        """Return these bits with each signal that is a key of ``sources`` replaced by the value."""
        if sources.keys().isdisjoint(self.names):
            return self
        found = []
        for run in self.runs:
            source = sources.get(run.name)
            found += [run] if source is None else source.part(run.low, run.width).runs
        return Bits.of(found)


NOTHING = Bits(())
