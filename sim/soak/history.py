# SPDX-License-Identifier: Apache-2.0
"""The tuples of one side, and which of them its window holds at every moment."""

import numpy as np

__all__ = ["History"]


class History:
    """All stored tuples of one side, numbered by their *places* in the order of arrival.

    Parameters
    ----------
    tuples : sim.soak.tuples.Tuples
        Of both sides, none of them out of order.
    side : int
    windows : sim.soak.controls.Windows
        Those of the side.
    faults : sim.soak.faults.Faults
        It knows the eras.
    timestamp_bits : int
        Up to 48, so that a number of 64 bits has room for the era above a timestamp.

    Attributes
    ----------
    stored : int64 array
        Numbers of the side's tuples.
    begins : int64 array
        For each window, the place of its first tuple.
    """

    def __init__(self, tuples, side, windows, faults, timestamp_bits):
        self.tuples, self.windows = tuples, windows
        self.stored = np.flatnonzero(tuples.side == side)
        self.begins = np.searchsorted(tuples.moment[self.stored], windows.begin)
        # Time restarts with an era. Together they never go back.
        era = faults.era(tuples.moment).astype(np.uint64)
        self.clock = era << np.uint64(timestamp_bits) | tuples.time

    def oldest_beside(self):
        """Return, for each stored tuple, the oldest one that stays in the window beside it.

        It is given by its place. Of a full count-based window the oldest tuple leaves.
        """
        window, low, high = self.spans(self.stored)
        size = self.windows.size[window]
        leaves = ~self.windows.timed[window] & (high - low >= size)
        return low + leaves

    def spans(self, others):
        """Return what the window holds at the arrival of some tuples, of either side.

        Returns
        -------
        window : int64 array
            The number of the window for each tuple.
        low, high : int64 arrays
            The places in it are ``low .. high - 1``. Neither falls from one tuple to the next.
        """
        window = self.windows.at(self.tuples.moment[others])
        first, size = self.begins[window], self.windows.size[window]
        high = np.searchsorted(self.stored, others)
        low = np.maximum(high - size, first)
        timed = np.flatnonzero(self.windows.timed[window])
        if len(timed):
            now, lifespan = others[timed], size[timed].astype(np.uint64)
            oldest = self.clock[now] - np.minimum(lifespan, self.tuples.time[now])
            alive = np.searchsorted(self.clock[self.stored], oldest)
            low[timed] = np.clip(alive, first[timed], high[timed])
        return window, low, high
