# SPDX-License-Identifier: Apache-2.0
"""What a chain of cores has to answer, by ``docs/architecture.md``, "Chains of cores"."""

import numpy as np

from .aggregates import AggregateModel
from .history import History
from .model import Answer, Model
from .results import MARK, Results, pack, pack_match
from .sorting import order_of

__all__ = ["ChainModel", "model_of"]

R, S = 0, 1


def model_of(manifest):
    """Return the model of the accelerator that a manifest describes."""
    if "value" in manifest["input_word"]["fields"]:
        return AggregateModel(manifest)
    return (ChainModel if "chain" in manifest else Model)(manifest)


class ChainModel(Model):
    """The chain of cores that a manifest describes.

    Parameters
    ----------
    manifest : dict
        As read from ``manifest.json``.
    """

    def answer(self, words):
        """Return the :class:`sim.soak.model.Answer` to a program whose last word is a FLUSH."""
        tuples, controls, faults = self.read(words)
        count = tuple(int((tuples.side == side).sum()) for side in (R, S))
        self.drop_overflowing(tuples, controls, faults)
        results = self.between_marks(tuples, controls, faults)
        return Answer(
            results,
            np.ones(len(controls.marks), bool),
            np.zeros(len(results), bool),
            np.zeros(0, np.int64),
            count,
            {**controls.counts, "(illegal)": len(controls.illegal)},
        )

    def history(self, side, tuples, controls, faults):
        """Return the :class:`sim.soak.history.History` of a side."""
        windows = controls.windows(side)
        return History(tuples, side, windows, faults, self.parameters["timestamp_bits"])

    def drop_overflowing(self, tuples, controls, faults):
        """Leave out every tuple that finds its side's time-based window full.

        One that is left out makes no other one overflow.
        """
        keep = np.ones(len(tuples.moment), bool)
        for side in (R, S):
            history = self.history(side, tuples, controls, faults)
            window, low, high = history.spans(history.stored)
            timed = history.windows.timed[window]
            if not (timed & (high - low >= self.capacity)).any():
                continue
            stays, before = [], [0]
            for oldest, is_timed in zip(low.tolist(), timed.tolist(), strict=True):
                stays.append(not is_timed or before[-1] - before[oldest] < self.capacity)
                before.append(before[-1] + stays[-1])
            dropped = history.stored[~np.array(stays)]
            keep[dropped] = False
            faults.note(faults.overflow[side], tuples.moment[dropped])
        tuples.keep(keep)

    def pairs(self, tuples, controls, faults):
        """Return all pairs: the numbers of both tuples in the program, the later one first."""
        found = []
        for stored_side in (R, S):
            history = self.history(stored_side, tuples, controls, faults)
            probes = np.flatnonzero(tuples.side != stored_side)
            _, low, high = history.spans(probes)
            probe, place, _ = self.finder.matches(
                stored_side, tuples, controls, history.stored, probes, low, high
            )
            found.append((probes[probe], history.stored[place]))
        return tuple(np.concatenate(part) for part in zip(*found, strict=True))

    def ordinals(self, tuples, faults):
        """Return the number of every tuple within its side since CLEAR, as results have it."""
        ordinal, era = np.zeros(len(tuples.moment), np.int64), faults.era(tuples.moment)
        for side in (R, S):
            own = np.flatnonzero(tuples.side == side)
            ordinal[own] = np.arange(len(own)) - np.searchsorted(era[own], era[own])
        return ordinal % (1 << self.manifest["chain"]["ordinal_bits"])

    def between_marks(self, tuples, controls, faults):
        """Return the results: pairs, in no order that would count, before the next mark."""
        later, earlier = self.pairs(tuples, controls, faults)
        ordinal, is_r = self.ordinals(tuples, faults), tuples.side[later] == R
        r, s = np.where(is_r, later, earlier), np.where(is_r, earlier, later)
        marks = np.array(controls.marks, np.int64)
        segment = np.searchsorted(marks, tuples.moment[later])
        order = order_of(np.concatenate([2 * segment, 2 * np.arange(len(marks)) + 1]))
        told = pack(MARK, *faults.before(marks))
        codes = np.concatenate([pack_match(ordinal[r], ordinal[s]), told])[order]
        return Results(np.zeros(len(codes), np.int64), codes)
