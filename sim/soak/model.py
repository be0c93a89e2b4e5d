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
from .finding import Finder
from .groups import stars_of
from .history import History
from .masks import Masks
from .results import INNER, KIND, MARK, STAR, Results, identity, pack, pack_pair
from .rounds import round_sizes, rounds_with_stars
from .sorting import order_of
from .tuples import Tuples
from .turns import read_turns
from .words import WordLayout

__all__ = ["Answer", "Model"]

R, S = 0, 1


@dataclass(frozen=True)
class Answer:
    """Expected results of a program.

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
    control_words : dict
        How often each operation, and ``(illegal)`` words, occur.
    """

    results: Results
    free: np.ndarray
    loose: np.ndarray
    void: np.ndarray
    tuples: tuple
    control_words: dict


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
        self.finder = Finder(self.parameters)
        self.capacity = self.storage["cores"] * self.storage["sub_window"]

    def answer(self, words, mute=None):
        """Return the :class:`Answer` to a program whose last word is a FLUSH.

        Core ``mute``, if given, is masked all the time.
        """
        tuples, controls, faults = self.read(words)
        turns = read_turns(self.storage["cores"], controls, tuples)
        masks = Masks(self.storage["cores"], controls.masks, mute)
        faults.note(faults.illegal, np.array(controls.illegal, np.int64))
        count = tuple(int((tuples.side == side).sum()) for side in (R, S))
        *pairs, spans = zip(
            *(
                self.pairs_against(stored, tuples, controls, faults, turns, masks)
                for stored in (R, S)
            ),
            strict=True,
        )
        stars = stars_of(self.manifest, tuples.moment, tuples.side, controls, turns)
        sizes = round_sizes(controls, turns, tuples)
        body = self.grouped(tuples, turns, masks, stars, sizes, map(np.concatenate, pairs), spans)
        results, loose = self.in_order(tuples, controls, faults, stars, body)
        return Answer(
            results,
            self.free_orders(controls),
            loose,
            self.void_probes(tuples, faults, stars),
            count,
            {**controls.counts, "(illegal)": len(controls.illegal)},
        )

    def free_orders(self, controls):
        """Return for every mark whether the order of the results before it is free."""
        return controls.free()

    def read(self, words):
        """Return the tuples in order, the control words and the faults of a program."""
        tuples = Tuples(self.layout, self.manifest, words)
        controls = read_controls(self.manifest, self.layout, words, self.capacity)
        faults = Faults(controls)
        self.drop_disordered(tuples, faults)
        return tuples, controls, faults

    def drop_disordered(self, tuples, faults):
        """Leave out the tuples from the first whose time goes back, until the next CLEAR."""
        if not self.parameters["timestamp_bits"]:
            return
        era = faults.era(tuples.moment)
        back = (tuples.time[1:] < tuples.time[:-1]) & (era[1:] == era[:-1])
        faults.note(faults.disorder, tuples.moment[1:][back])
        tuples.keep(tuples.moment < faults.disorder[era])

    def pairs_against(self, stored_side, tuples, controls, faults, turns, masks):
        """Return the pairs of the probes that meet tuples of one side, until that overflows.

        They come as five arrays: the number of the probe's tuple, the core of the stored tuple, its
        number in that core, whether the pair may be missing, and the number of the stored tuple.
        Then come, as three rows of an array, all the probes, the ordinals of the first tuples that
        they see, and those behind the last ones.
        """
        windows = controls.windows(stored_side)
        bits = self.parameters["timestamp_bits"]
        history = History(tuples, stored_side, windows, faults, bits)
        places = turns.places(history)
        over = places.held(history.oldest_beside()) >= self.storage["sub_window"]
        over &= ~masks.of(tuples.moment[history.stored], places.core)
        overflow = faults.overflow[stored_side]
        faults.note_overflows(
            stored_side, tuples.moment[history.stored[over]], places.core[over], masks
        )

        probes = np.flatnonzero(tuples.side != stored_side)
        probes = probes[~faults.since(overflow, tuples.moment[probes])]
        window, low, high = history.spans(probes)
        probe, place, loose = self.finder.matches(
            stored_side, tuples, controls, history.stored, probes, low, high
        )
        begins = history.begins[window]
        window = window[probe]
        loose |= windows.distinct[window] & (np.bincount(probe, minlength=1)[probe] > 1)
        seen = np.stack([probes, low - begins, high - begins])
        core = places.core[place]
        kept = ~masks.of(tuples.moment[probes[probe]], core)
        pairs = (probes[probe], core, places.local[place], loose, history.stored[place])
        return *(column[kept] for column in pairs), seen

    def grouped(self, tuples, turns, masks, stars, sizes, pairs, spans):
        """Return the pairs and the stars of rounds: star of the group, side, code, may be missing.

        They are in the order of the groups, and in their order within a group. ``sizes`` are the
        sizes of the rounds, by tuple.
        """
        probe, core, local, loose, _ = pairs
        lanes = self.storage["lanes"]
        row = (local // lanes) % self.storage["ring_rows"]
        codes = pack_pair(core, row, local % lanes, stars.probe[probe])
        size = sizes[probe]
        of_pair = np.where(size > 0, local // np.maximum(size, 1), 0)

        seeing, begin, end = np.concatenate(spans, axis=1)
        size = sizes[seeing]
        seeing, begin, end, size = (column[size > 0] for column in (seeing, begin, end, size))
        moments = tuples.moment[seeing]
        answering = turns.answering(moments, masks)
        which, number = rounds_with_stars(turns.live(moments), answering, size, begin, end)
        ending, none = seeing[which], np.zeros(len(which), np.int64)
        both = [
            (stars.of[probe], stars.of[ending]),
            (of_pair, number),
            (np.zeros_like(probe), none + 1),
            (core, none),
            (local, none),
            (stars.probe[probe], none),
        ]
        order = order_of(*(np.concatenate(part) for part in both))
        columns = [
            both[0],
            (tuples.side[probe], tuples.side[ending]),
            (codes, none + (INNER << KIND)),
            (loose, none > 0),
        ]
        return [np.concatenate(part)[order] for part in columns]

    def in_order(self, tuples, controls, faults, stars, body):
        """Return all results in their order, and which of the pairs may be missing."""
        star, side, codes, loose = body
        marks = np.array(controls.marks, np.int64)
        mark_star = np.searchsorted(stars.moment, marks, side="right")
        overflow, disorder, illegal = faults.before(stars.moment)
        other = np.where(stars.side == R, 1 << S, 1 << R)
        star_codes = pack(STAR, overflow & other, disorder, illegal)
        number = np.arange(len(star_codes))
        # Behind the pairs of a star it comes itself, then the marks of the word that closed its
        # group.
        sequence = order_of(np.concatenate([3 * star, 3 * number + 1, 3 * mark_star - 1]) + 1)
        side = np.concatenate([side, stars.side, np.zeros_like(marks)])
        code = np.concatenate([codes, star_codes, pack(MARK, *faults.before(marks))])
        loose = np.concatenate([loose, np.zeros(len(number) + len(marks), bool)])
        return Results(side[sequence], code[sequence]), loose[sequence]

    def void_probes(self, tuples, faults, stars):
        """Return the identities of probes that meet a window which has overflowed."""
        void = np.zeros(len(tuples.moment), bool)
        for side in (R, S):
            over = faults.since(faults.overflow[side], tuples.moment)
            void |= over & (tuples.side != side)
        chosen = np.flatnonzero(void)
        if not len(chosen):
            return chosen
        number = np.where(stars.side == R, np.cumsum(stars.side == R), np.cumsum(stars.side == S))
        of = number[stars.of[chosen]] - 1
        return identity(tuples.side[chosen], of, stars.probe[chosen])
