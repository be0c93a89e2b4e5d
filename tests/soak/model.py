# SPDX-License-Identifier: Apache-2.0
"""What the results of a program have to be, by ``docs/architecture.md``, sections 1 to 3.

A program is an array of input words. :class:`Model` reads it as the accelerator would, all tuples
at once where nothing but tuples comes. Every tuple and every control word has a *moment*: twice the
number of its word, and one more for the second tuple of a word.
"""

from dataclasses import dataclass

import numpy as np

from .matching import Finder
from .reading import Faults, Tuples, read_controls
from .results import (
    INNER,
    KIND,
    MARK,
    STAR,
    Results,
    identity,
    order_of,
    pack,
    pack_match,
    pack_pair,
    pack_value,
)
from .stars import round_sizes, rounds_with_stars, stars_of
from .storage import History, Masks, read_turns
from .words import WordLayout, parameters_of

__all__ = ["AggregateModel", "Answer", "ChainModel", "Model", "model_of"]

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
        Identities (:meth:`tests.soak.results.Results.probes`) of probes whose pairs mean nothing.
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
        self.parameters = parameters_of(manifest)
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


class AggregateModel(Model):
    """The join aggregate that a manifest describes.

    Parameters
    ----------
    manifest : dict
        As read from ``manifest.json``.
    """

    def __init__(self, manifest):
        super().__init__(manifest)
        self.fields = manifest["result_word"]["fields"]
        self.values = None

    def read(self, words):
        """Return what :meth:`Model.read` does; keep the value of each tuple that is left."""
        tuples, controls, faults = super().read(words)
        bits = self.layout.fields["value"]["bits"]
        value = self.layout.get(words[tuples.moment // 2], "value").astype(np.int64)
        self.values = value - (value >> bits - 1 << bits)
        return tuples, controls, faults

    def pairs_against(self, stored_side, tuples, controls, faults, turns, masks):
        """Return the pairs of the probes of R; tuples of R are not stored, and never too many."""
        if stored_side == S:
            return super().pairs_against(stored_side, tuples, controls, faults, turns, masks)
        none = np.zeros(0, np.int64)
        return none, none, none, none > 0, none, np.zeros((3, 0), np.int64)

    def grouped(self, tuples, turns, masks, stars, sizes, pairs, spans):
        """Return a value for each tuple of R, in the place of its pairs."""
        probe, _, _, _, stored = pairs
        probes = np.flatnonzero(tuples.side == R)
        own = np.searchsorted(probes, probe)
        value = self.values[stored]
        half = 1 << self.layout.fields["value"]["bits"] - 1
        count = np.bincount(own, minlength=len(probes))
        total = np.zeros(len(probes), np.int64)
        least, most = np.full(len(probes), half - 1), np.full(len(probes), -half)
        np.add.at(total, own, value)
        np.minimum.at(least, own, value)
        np.maximum.at(most, own, value)
        parts = {"count": count, "total": total, "least": least, "most": most}
        bits = [self.fields[f"value.{name}"]["bits"] for name in parts]
        codes = pack_value(stars.probe[probes], zip(parts.values(), bits, strict=True))
        return stars.of[probes], np.full(len(probes), R), codes, np.zeros(len(probes), bool)

    def in_order(self, tuples, controls, faults, stars, body):
        """Return all results in their order, without the stars of S."""
        results, loose = super().in_order(tuples, controls, faults, stars, body)
        kept = (results.kind != STAR) | (results.side == R)
        return Results(results.side[kept], results.code[kept]), loose[kept]

    def free_orders(self, controls):
        """Return for every mark that the order before it is fixed, whatever PRECISION says."""
        return np.zeros_like(super().free_orders(controls))


class ChainModel(Model):
    """The chain of cores that a manifest describes.

    Parameters
    ----------
    manifest : dict
        As read from ``manifest.json``.
    """

    def answer(self, words):
        """Return the :class:`Answer` to a program whose last word is a FLUSH."""
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
        """Return the :class:`tests.soak.storage.History` of a side."""
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


def model_of(manifest):
    """Return the model of the accelerator that a manifest describes."""
    if "value" in manifest["input_word"]["fields"]:
        return AggregateModel(manifest)
    return (ChainModel if "chain" in manifest else Model)(manifest)
