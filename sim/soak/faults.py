# SPDX-License-Identifier: Apache-2.0
"""When a program made faults, and what stars and marks tell of them."""

import numpy as np

__all__ = ["Faults"]

R, S = 0, 1
NEVER = 1 << 62


class Faults:
    """The moments of faults since each CLEAR."""

    def __init__(self, controls):
        self.begins = [begin for begin, _ in controls.eras()]
        self.ends = [end for _, end in controls.eras()]
        eras = len(self.begins)
        self.overflow = [[NEVER] * eras, [NEVER] * eras]
        self.disorder = [NEVER] * eras
        self.illegal = [NEVER] * eras
        for moment in reversed(controls.illegal):
            self.illegal[self.era(moment)] = moment

    def era(self, moment):
        """Return the number of CLEAR words before a moment."""
        return int(np.searchsorted(self.begins[1:], moment, side="left"))

    def overflowed(self, side, moment):
        """Note that a tuple of a side found no room."""
        era = self.era(moment)
        self.overflow[side][era] = min(self.overflow[side][era], moment)

    def before(self, moments):
        """Return the faults before each moment: overflow by side, disorder, illegal, as numbers."""
        era = np.searchsorted(self.begins[1:], moments, side="left")

        def made(first):
            return (np.array(first)[era] < moments).astype(np.int64)

        overflow = made(self.overflow[R]) | made(self.overflow[S]) << S
        return overflow, made(self.disorder), made(self.illegal)

    def voids(self):
        """Yield from when and until when the pairs with tuples of which side mean nothing."""
        for side in (R, S):
            for moment, end in zip(self.overflow[side], self.ends, strict=True):
                if moment != NEVER:
                    yield moment + 1, end, side
