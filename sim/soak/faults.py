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
    """

    def __init__(self, controls):
        self.clears = np.array(controls.clears, np.int64)
        never = np.full(len(self.clears) + 1, NEVER)
        self.overflow = [never.copy(), never.copy()]
        self.disorder, self.illegal = never.copy(), never
        self.note(self.illegal, np.array(controls.illegal, np.int64))

    def era(self, moments):
        """Return the number of CLEAR words before each moment."""
        return np.searchsorted(self.clears, moments)

    def note(self, first, moments):
        """Note faults of a kind, given by its array."""
        np.minimum.at(first, self.era(moments), moments)

    def since(self, first, moments):
        """Tell which moments come after a fault of their era."""
        return first[self.era(moments)] < moments

    def before(self, moments):
        """Return the faults before each moment: overflow by side, disorder, illegal, as numbers."""
        over_r, over_s, disorder, illegal = (
            self.since(first, moments).astype(np.int64)
            for first in (*self.overflow, self.disorder, self.illegal)
        )
        return over_r | over_s << S, disorder, illegal
