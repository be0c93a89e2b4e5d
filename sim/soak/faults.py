# SPDX-License-Identifier: Apache-2.0
"""When a program made faults, and what stars and marks tell of them."""

import numpy as np

__all__ = ["Faults"]

R, S = 0, 1
NEVER = 1 << 62


class Faults:
    """The moments of the first faults since each CLEAR.

    An *era* is what lies between two CLEAR words. The mark of a CLEAR belongs to the era that it
    ends.

    Parameters
    ----------
    controls : sim.soak.controls.Controls

    Attributes
    ----------
    overflow : list of two int64 arrays
        For each side and era, the moment of the first tuple that found no room.
    disorder, illegal : int64 arrays
        For each era, the moments of the first tuple out of order and of the first illegal word.
    told : list of two pairs of int64 arrays, or None
        For each side, when cores begin and end to tell of an overflow; if it is None, they do from
        an overflow to the end of its era.
    """

    def __init__(self, controls):
        self.clears = np.array(controls.clears, np.int64)
        never = np.full(len(self.clears) + 1, NEVER)
        self.overflow = [never.copy(), never.copy()]
        self.disorder, self.illegal = never.copy(), never
        self.told = [None, None]
        self.note(self.illegal, np.array(controls.illegal, np.int64))

    def era(self, moments):
        """Return the number of CLEAR words before each moment."""
        return np.searchsorted(self.clears, moments)

    def note(self, first, moments):
        """Note faults of a kind, given by its array."""
        np.minimum.at(first, self.era(moments), moments)

    def note_overflows(self, side, moments, cores, masks):
        """Note tuples that find no room in their cores; a core tells of it until it is masked."""
        self.note(self.overflow[side], moments)
        begins, ends = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for core in np.unique(cores):
            borders = np.union1d(self.clears, masks.changes(core))
            mine = moments[cores == core]
            interval, first = np.unique(np.searchsorted(borders, mine), return_index=True)
            begins.append(mine[first])
            ends.append(np.append(borders, NEVER)[interval])
        self.told[side] = np.sort(np.concatenate(begins)), np.sort(np.concatenate(ends))

    def tells(self, side, moments):
        """Tell whether an overflow of a side is told at each moment."""
        if self.told[side] is None:
            return self.since(self.overflow[side], moments)
        begun, ended = (np.searchsorted(border, moments) for border in self.told[side])
        return begun > ended

    def since(self, first, moments):
        """Tell which moments come after a fault of their era."""
        return first[self.era(moments)] < moments

    def before(self, moments):
        """Return the faults before each moment: overflow by side, disorder, illegal, as numbers."""
        over_r, over_s = (self.tells(side, moments).astype(np.int64) for side in (R, S))
        disorder, illegal = (
            self.since(first, moments).astype(np.int64) for first in (self.disorder, self.illegal)
        )
        return over_r | over_s << S, disorder, illegal
