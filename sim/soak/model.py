# SPDX-License-Identifier: Apache-2.0
"""What the results of a program have to be, by ``docs/architecture.md``, sections 1 to 3.

A program is an array of input words. :class:`Model` reads it as the accelerator would, all tuples
at once where nothing but tuples comes. Every tuple and every control word has a *moment*: twice the
number of its word, and one more for the second tuple of a word.
"""

from dataclasses import dataclass

import numpy as np

from .controls import read_controls
from .faults import Faults
from .groups import stars_of
from .matching import equal_pairs, limits, pairs_of, pairs_within
from .predicates import CUSTOM
from .results import MARK, STAR, Results, identity, pack, pack_pair
from .tuples import Tuples
from .words import WordLayout

__all__ = ["Answer", "Model"]

R, S = 0, 1


@dataclass(frozen=True)
class Answer:
    """What has to come.

    Parameters
    ----------
    results : Results
        In their order, as far as there is one.
    free : bool array
        For every mark: whether the order of the results before it is free.
    loose : bool array
        Of the results: pairs that may be missing, as the program broke a promise.
    void : int64 array
        Identities (:meth:`sim.soak.results.Results.probes`) of probes whose pairs mean nothing.
    tuples : tuple of int
        Tuples of R and of S that were not dropped.
    illegal : int
        Illegal words.
    """

    results: Results
    free: np.ndarray
    loose: np.ndarray
    void: np.ndarray
    tuples: tuple
    illegal: int


class Model:
    """The accelerator that a manifest describes.

    Parameters
    ----------
    manifest : dict
        As read from ``manifest.json``.
    """

    def __init__(self, manifest):
        self.manifest = manifest
        self.parameters = manifest["parameters"]
        self.storage = manifest["storage"]
        self.layout = WordLayout(manifest["input_word"])
        self.capacity = self.storage["cores"] * self.storage["sub_window"]

    def answer(self, words):
        """Return the :class:`Answer` to a program whose last word is a FLUSH."""
        tuples = Tuples(self.layout, self.manifest, words)
        controls = read_controls(self.manifest, self.layout, words, self.capacity)
        faults = Faults(controls)
        self.drop_disordered(tuples, controls, faults)
        count = tuple(int((tuples.side == side).sum()) for side in (R, S))
        pairs = [self.pairs_against(stored, tuples, controls, faults) for stored in (R, S)]
        stars = stars_of(self.manifest, tuples.moment, tuples.side, controls)
        results, loose = self.in_order(tuples, controls, faults, stars, pairs)
        return Answer(
            results,
            controls.free(),
            loose,
            self.void_probes(tuples, faults, stars),
            count,
            len(controls.illegal),
        )

    def control_words(self, words):
        """Return how often each operation, and illegal words, occur in a program."""
        controls = read_controls(self.manifest, self.layout, words, self.capacity)
        counts = {("control word", name): count for name, count in controls.counts.items()}
        return counts | {("control word", "(illegal)"): len(controls.illegal)}

    def drop_disordered(self, tuples, controls, faults):
        """Leave out the tuples from the first whose time goes back, until the next CLEAR."""
        if not self.parameters["timestamp_bits"]:
            return
        keep = np.ones(len(tuples.moment), bool)
        for era, (begin, end) in enumerate(controls.eras()):
            low, high = np.searchsorted(tuples.moment, (begin, end))
            time = tuples.time[low:high]
            wrong = np.flatnonzero(time[1:] < time[:-1])
            if len(wrong):
                first = low + 1 + int(wrong[0])
                keep[first:high] = False
                faults.disorder[era] = int(tuples.moment[first])
        tuples.moment, tuples.side, tuples.time = (
            column[keep] for column in (tuples.moment, tuples.side, tuples.time)
        )
        tuples.keys = [column[keep] for column in tuples.keys]

    def pairs_against(self, stored_side, tuples, controls, faults):
        """Return the pairs of the probes that meet tuples of one side, until that overflows.

        They come as three arrays: the number of the probe's tuple, the ordinal of the stored tuple,
        and whether the pair may be missing.
        """
        stored = np.flatnonzero(tuples.side == stored_side)
        probes = np.flatnonzero(tuples.side != stored_side)
        found = [(np.zeros(0, np.int64),) * 2 + (np.zeros(0, bool),)]
        for window in controls.windows(stored_side):
            first, after = np.searchsorted(tuples.moment[stored], (window.begin, window.end))
            mine = stored[first:after]
            if not len(mine):
                continue
            if window.timed:
                held = np.arange(len(mine)) - self.expired(window, tuples, mine, mine)
                over = np.flatnonzero(held >= self.capacity)
                if len(over):
                    faults.overflowed(stored_side, int(tuples.moment[mine[over[0]]]))
            last = min(window.end, faults.overflow[stored_side][faults.era(window.begin + 1)])
            begin, end = np.searchsorted(tuples.moment[probes], (window.begin, last))
            theirs = probes[begin:end]
            high = np.searchsorted(mine, theirs)
            low = self.window_begins(window, tuples, mine, theirs, high)
            probe, place, loose = self.matches(
                stored_side, tuples, controls, mine, theirs, low, high
            )
            if window.distinct:
                loose |= np.bincount(probe, minlength=1)[probe] > 1
            found.append((theirs[probe], place, loose))
        return tuple(np.concatenate(part) for part in zip(*found, strict=True))

    @staticmethod
    def expired(window, tuples, mine, others):
        """Return how many of a time-based window's tuples have outlived its lifespan, at others."""
        lifespan = np.uint64(window.size)
        time = tuples.time[others]
        oldest = np.where(time > lifespan, time - lifespan, np.uint64(0))
        return np.searchsorted(tuples.time[mine], oldest)

    def window_begins(self, window, tuples, mine, others, present):
        """Return the ordinal of the oldest tuple of a window at each of some tuples.

        ``present`` tells how many of the window's tuples came before each.
        """
        if window.timed:
            return np.minimum(self.expired(window, tuples, mine, others), present)
        return np.maximum(present - window.size, 0)

    def matches(self, stored_side, tuples, controls, mine, theirs, low, high):
        """Return the pairs of one window: probe and stored tuple, by place, and what may miss."""
        stored, keys = ([key[of] for key in tuples.keys] for of in (mine, theirs))
        comparator = self.parameters["comparator"]
        if comparator == "equality":
            probe, place = equal_pairs(stored, keys, low, high)
            return probe, place, np.zeros(len(probe), bool)
        if comparator == "custom":
            probe, place = self.custom_matches(stored_side, stored, keys, low, high)
            return probe, place, np.zeros(len(probe), bool)
        found = []
        for bounds, begin, end in controls.bounds_of(tuples.moment[theirs]):
            ranges = []
            for key, field, (least, most) in zip(
                keys, self.parameters["keys"], bounds, strict=True
            ):
                by = (-most, -least) if stored_side == S else (least, most)
                ranges.append(limits(key[begin:end], field["bits"], *by))
            probe, place = pairs_within(stored, ranges, low[begin:end], high[begin:end])
            loose = controls.misled(bounds, tuples.moment[theirs[begin:end]])
            found.append((probe + begin, place, loose[probe]))
        if not found:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, bool)
        return tuple(np.concatenate(part) for part in zip(*found, strict=True))

    def custom_matches(self, stored_side, stored, keys, low, high):
        """Return the pairs of one window for which the custom predicate holds."""
        fields = self.parameters["keys"]
        holds = CUSTOM[self.parameters["predicate"].partition(":")[2]]

        def values(columns, at, axis):
            """Return the fields as they are, along one axis of a matrix."""
            return {
                field["name"]: np.expand_dims(
                    column[at].astype(np.int64) - (field["signed"] << field["bits"] - 1), axis
                )
                for field, column in zip(fields, columns, strict=True)
            }

        def compare(probes, places):
            probe, place = values(keys, probes, 1), values(stored, places, 0)
            return holds(probe, place) if stored_side == S else holds(place, probe)

        return pairs_of(len(stored[0]), low, high, compare)

    def in_order(self, tuples, controls, faults, stars, pairs):
        """Return all results in their order, and which of the pairs may be missing."""
        probe, ordinal, loose = (np.concatenate(part) for part in zip(*pairs, strict=True))
        cores, lanes = self.storage["cores"], self.storage["lanes"]
        core, local = ordinal % cores, ordinal // cores
        row = (local // lanes) % self.storage["ring_rows"]
        codes = pack_pair(core, row, local % lanes, stars.probe[probe])
        star = stars.of[probe]
        order = np.lexsort((stars.probe[probe], local, core, star))
        marks = np.array(controls.marks, np.int64)
        mark_star = np.searchsorted(stars.moment, marks, side="right")
        overflow, disorder, illegal = faults.before(stars.moment)
        other = np.where(stars.side == R, 1 << S, 1 << R)
        star_codes = pack(STAR, overflow & other, disorder, illegal)
        columns = [
            # by star; pairs before it, and marks behind the stars that their word has closed
            np.concatenate([2 * star[order], 2 * np.arange(len(stars.moment)), 2 * mark_star - 1]),
            np.concatenate([np.zeros(len(order), int), np.ones(len(stars.moment), int),
                            2 + np.arange(len(marks))]),
            np.concatenate([tuples.side[probe][order], stars.side, np.zeros(len(marks), int)]),
            np.concatenate([codes[order], star_codes, pack(MARK, *faults.before(marks))]),
            np.concatenate([loose[order], np.zeros(len(stars.moment) + len(marks), bool)]),
        ]  # fmt: skip
        sequence = np.lexsort((columns[1], columns[0]))
        side, code, loose = (column[sequence] for column in columns[2:])
        return Results(side, code), loose

    def void_probes(self, tuples, faults, stars):
        """Return the identities of probes that meet a window which has overflowed."""
        void = np.zeros(len(tuples.moment), bool)
        for begin, end, side in faults.voids():
            low, high = np.searchsorted(tuples.moment, (begin, end))
            void[low:high] |= tuples.side[low:high] != side
        numbers = np.zeros(len(stars.moment) + 1, np.int64)
        for side in (R, S):
            mine = stars.side == side
            numbers[:-1][mine] = np.arange(mine.sum())
        chosen = np.flatnonzero(void)
        return identity(tuples.side[chosen], numbers[stars.of[chosen]], stars.probe[chosen])
