# SPDX-License-Identifier: Apache-2.0
"""Bits of a netlist: runs of bits of signals and of constants, side by side."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

__all__ = ["NOTHING", "Bits", "Run"]


class Run(NamedTuple):
    """Neighbouring bits of a signal, from bit ``low`` up.

    Without a ``name``, they are constant and ``low`` is their value.
    """

    name: str | None
    low: int
    width: int

    def part(self, low, width):
        """Return ``width`` bits from bit ``low`` of this run up."""
        if self.name is None:
            return Run(None, self.low >> low & (1 << width) - 1, width)
        return Run(self.name, self.low + low, width)

    def followed_by(self, above):
        """Return this run and the one ``above`` it as one run; None if they are two."""
        if self.name != above.name:
            return None
        if self.name is None:
            return Run(None, self.low | above.low << self.width, self.width + above.width)
        if self.low + self.width != above.low:
            return None
        return Run(self.name, self.low, self.width + above.width)


@dataclass(frozen=True)
class Bits:
    """Some bits, as the fewest runs that they consist of.

    Parameters
    ----------
    runs : tuple of Run
        The lowest first. Use :meth:`of`, which joins what belongs together.
    """

    runs: tuple

    @classmethod
    def of(cls, runs):
        """Return the bits of any runs, the lowest first."""
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
        """Return a constant."""
        return cls((Run(None, value, width),))

    @cached_property
    def width(self):
        """Number of bits."""
        return sum(run.width for run in self.runs)

    @cached_property
    def names(self):
        """Names of the signals."""
        return frozenset(run.name for run in self.runs if run.name is not None)

    @property
    def value(self):
        """Value of a constant; None if a bit is none."""
        return self.runs[0].low if len(self.runs) == 1 and not self.names else None

    def part(self, low, width):
        """Return ``width`` bits from bit ``low`` up."""
        found, start, end = [], 0, low + width
        for run in self.runs:
            first, last = max(low, start), min(end, start + run.width)
            if first < last:
                found.append(run.part(first - start, last - first))
            start += run.width
        return Bits.of(found)

    def substitute(self, sources):
        """Return these bits with the signals that are keys of ``sources`` replaced by its bits."""
        if sources.keys().isdisjoint(self.names):
            return self
        found = []
        for run in self.runs:
            source = sources.get(run.name)
            found += [run] if source is None else source.part(run.low, run.width).runs
        return Bits.of(found)


NOTHING = Bits(())
