# SPDX-License-Identifier: Apache-2.0
"""Random scenarios: tuples and changes of configuration."""

from itertools import pairwise

import numpy as np

from host.protocol.buckets import Coordinate
from host.protocol.cells import Cell
from host.protocol.codecs import WordCodec
from host.protocol.manifest import JoinAggregateManifest
from host.protocol.spread import SEED_BITS

from .scenario import Scenario

__all__ = ["MARKED", "random_scenario", "random_values"]

#: Patterns in which the sides of tuples follow one another.
SHAPES = ("random", "alternating", "bursts", "only_r", "only_s", "empty")
#: Control words that are answered by a mark.
MARKED = ("CLEAR", "FLUSH", "PRECISION", "INNER")


def sides_of(shape, count, generator):
    """Return the sides of ``count`` tuples."""
    if shape == "alternating":
        return np.arange(count) % 2
    if shape == "bursts":
        return np.repeat(generator.integers(0, 2, count), generator.integers(1, 40, count))[:count]
    if shape in ("only_r", "only_s"):
        return np.full(count, int(shape == "only_s"))
    return generator.integers(0, 2, count)


def packed(codec, sides, keys, times, generator):
    """Return the words of tuples. Some tuples that could share a word stay in separate words."""
    ends = [len(sides)]
    if codec.manifest.tuples_per_word == 2:
        cuts = generator.random(len(sides)) < generator.choice([0, 0.2, 0.8])
        ends = [*np.flatnonzero(cuts), *ends]
    parts = []
    for begin, end in pairwise([0, *ends]):
        columns = {name: column[begin:end] for name, column in keys.items()}
        own = sides[begin:end].astype(np.uint8)
        values = random_values(codec.manifest, end - begin, generator)
        parts.append(codec.pack_tuples(own, columns, times[begin:end], values))
    words = np.concatenate(parts)
    if codec.manifest.tuples_per_word == 2:  # in a word with one tuple, `first` has no meaning
        place = codec.manifest.input_word["first"]
        alone = codec.tuple_counts(words) == 1
        bits = (alone & (generator.random(len(words)) < 0.5)).astype(np.uint64)
        words[:, place.offset // 64] ^= bits << np.uint64(place.offset % 64)
    return words


def random_values(manifest, count, generator):
    """Return values for the tuples of a join aggregate, some of them the extremes; else None."""
    if not isinstance(manifest, JoinAggregateManifest):
        return None
    half = 1 << manifest.value_bits - 1
    spread = min(half, int(generator.choice([1, 4, half])))
    values = generator.integers(-spread, spread, count)
    extreme = generator.choice([-half, half - 1], count)
    return np.where(generator.random(count) < 0.1, extreme, values)


class Writer:
    """Writer of the words of one scenario, segment by segment.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    seed : int
    overflow : bool
        Whether time-based windows may outgrow the cores.
    every_core : bool
        Whether all cores take turns, from the beginning of a segment to its end.

    Attributes
    ----------
    marks : int
        Number of control words so far that are answered by a mark.
    """

    def __init__(self, manifest, seed, *, overflow, every_core=False):
        self.manifest = manifest
        self.overflow = overflow
        self.every_core = every_core
        self.generator = np.random.default_rng(seed)
        self.codec = WordCodec(manifest)
        self.parts = []
        self.marks = 0
        self.fewest = 1  # fewest cores that take turns
        self.live = manifest.storage.cores  # cores that take turns now
        self.period = 1  # probes per star, except in rounds

    def below(self, limit):
        """Return a random number that is at least zero and below ``limit``."""
        return int(self.generator.integers(0, limit))

    def choose(self, values):
        """Return one of the given numbers at random."""
        return int(self.generator.choice(values))

    def control(self, op, index=0, value=0):
        """Write a control word."""
        self.parts.append(self.codec.pack_control(op, index, value))
        self.marks += op in MARKED

    def words(self):
        """Return all words written so far, one per row."""
        columns = self.parts[0].shape[-1]
        return np.concatenate([part.reshape(-1, columns) for part in self.parts])

    def segment(self, tuples):
        """Write a segment: a configuration, at most ``tuples`` tuples, and FLUSH.

        Some segments change a bound after their tuples and write ten more.
        """
        self.unmask()
        wide = self.choose([0, 1, 3, 40])
        changes = self.generator.random() < 0.3 and bool(self.manifest.bounded)
        self.operands(wide, changes)
        timed = bool(self.manifest.timestamp_bits) and self.generator.random() < 0.5
        count = self.below(tuples + 1)
        shape = str(self.generator.choice(SHAPES))
        if shape == "empty":
            count = 0
        pace = self.choose([1, 2, 5])
        self.fewest = 1 + self.below(self.manifest.storage.cores)
        changes_turns = self.generator.random() < 0.5
        if self.every_core:
            self.fewest, changes_turns = self.manifest.storage.cores, False
        rounds = "INNER" in self.manifest.operations and not self.overflow
        rounds = rounds and self.generator.random() < 0.7
        if rounds:
            self.fewest = self.live
        self.windows(timed, pace, self.room(changes_turns))
        if rounds:  # SEGMENT would end them
            self.inner()
        elif "INNER" in self.manifest.operations:
            self.control("PRECISION", 0, self.period)
        self.control("CLEAR")
        if not rounds:
            self.turns()
        keys = self.keys(count)
        times = self.times(count, pace, timed)
        self.tuples(shape, keys, times, changes=changes_turns)
        if changes:
            self.control("BOUND_HIGH", 0, int(self.generator.integers(-1, 3)))
            keys = {
                name: np.resize(column, 10) if count else np.zeros(10, np.int64)
                for name, column in keys.items()
            }
            last = times[-1] if count else 0
            self.tuples("random", keys, last + pace * np.arange(1, 11))
        self.control("FLUSH")

    def operands(self, wide, changes):
        """Write bounds at most ``wide`` away from zero, and the buckets or digests for them."""
        if self.manifest.has_grid:
            self.coordinates(fixed=wide == 0 and not changes)
        else:
            for index in range(self.manifest.indices.get("COORDINATE", 0)):
                self.control("COORDINATE", index, self.below(1 << SEED_BITS))
        for index, key in enumerate(self.manifest.bounded):
            most = (1 << key.bits) - 1  # the host clamps bounds to this value as well
            self.control("BOUND_LOW", index, -min(wide, most))
            self.control("BOUND_HIGH", index, min(self.below(wide + 1), most))
        if self.manifest.digests is not None:
            self.cells(wide)

    def cells(self, wide):
        """Write cells for the parts of the digests: some suit such bounds, some are too narrow."""
        suitable = (2 * wide).bit_length()
        for part, _ in enumerate(self.manifest.digests.parts):
            field = self.below(len(self.manifest.keys))
            most = self.manifest.keys[field].bits
            shift = self.choose([min(suitable, most), min(suitable, most), self.below(most + 1)])
            self.control("CELL", part, Cell(field, shift).value(self.manifest))

    def coordinates(self, *, fixed):
        """Write random coordinates of the fields in a bucket; some are hashes if ``fixed``."""
        place, left = 0, self.manifest.index.bucket_bits
        absurd = self.generator.random() < 0.4  # coordinates that overlap, or exceed the last bit
        for index in range(0 if absurd else len(self.manifest.keys)):
            self.control("COORDINATE", index, 0)
        for index, key in enumerate(self.manifest.keys):
            width = self.below(left + 1)
            shift = self.below(min(4, key.bits) + 1)
            part = Coordinate(shift, width, place, hashed=False)
            if fixed and self.generator.random() < 0.7:
                part = Coordinate(hashed=True, seed=self.below(1 << SEED_BITS))
            self.control("COORDINATE", index, part.value(self.manifest))
            if not absurd:
                place, left = place + part.width, left - part.width
            else:
                place = self.below(left + 1)

    def room(self, changes):
        """Return how many tuples fit the cores, whichever of them take turns."""
        if self.overflow:
            return self.manifest.capacity
        # Each of up to five segments may leave one tuple more in a core than an even share.
        own = self.manifest.storage.sub_window - 5 * changes
        return max(1, self.fewest * own)

    def windows(self, timed, pace, capacity):
        """Write the windows of both sides, which hold at most ``capacity`` tuples.

        Time-based windows hold at most a quarter of them, unless overflow is wanted.
        """
        lifespan = self.below(max(1, pace * capacity // 4)) * (8 if self.overflow else 1)
        for side in range(2):
            if timed:
                self.control("LIFESPAN", side, lifespan)
            else:
                size = self.choose([1, capacity, int(self.generator.integers(1, capacity + 1))])
                self.control("WINDOW", side, size)

    def turns(self):
        """Write a segment in which at least ``fewest`` cores take turns, in any order.

        The cores of a chain take no turns.
        """
        if "SEGMENT" not in self.manifest.operations:
            return
        cores = self.manifest.storage.cores
        most = self.choose(
            [cores, self.fewest, int(self.generator.integers(self.fewest, cores + 1))]
        )
        live = self.generator.permutation(cores)[:most]
        for core in live.tolist():
            self.control("CORE", 0, core)
        self.control("SEGMENT")
        self.live = most

    def inner(self):
        """Write an inner order of any rounds."""
        self.control("INNER", self.below(16), self.choose([1, 1, 1, 2, 3, 4, 6, 8, 40, 0]))

    def unmask(self):
        """Let all cores take part again, if cores can be masked; the configuration must follow."""
        if "UNMASK" in self.manifest.operations:
            for core in range(self.manifest.storage.cores):
                self.control("UNMASK", 0, core)

    def mask(self):
        """Mask a core, if cores can be masked; sometimes one that does not exist."""
        if "MASK" in self.manifest.operations and self.generator.random() < 0.7:
            self.control("MASK", 0, self.below(self.manifest.storage.cores + 1))

    def keys(self, count):
        """Return random keys of ``count`` tuples, with one to sixty different values per field."""
        values = self.choose([1, 2, 12, 60])
        return {
            key.name: np.clip(
                self.generator.integers(0, values, count) - values // 2, key.low, key.high
            )
            for key in self.manifest.keys
        }

    def times(self, count, pace, timed):
        """Return the timestamps of ``count`` tuples, in steps of ``pace`` or twice ``pace``."""
        steps = np.full(count, pace)
        if timed and not self.overflow:
            steps = self.generator.choice([pace, pace, 2 * pace], count)
        return np.cumsum(steps).astype(np.int64)

    def tuples(self, shape, keys, times, *, changes=False):
        """Write tuples whose sides follow the pattern ``shape``, with changes of turns if asked."""
        sides = sides_of(shape, len(times), self.generator)
        cuts = []
        if changes:
            cuts = sorted(self.generator.integers(0, len(times) + 1, self.below(5)).tolist())
        for begin, end in pairwise([0, *cuts, len(times)]):
            columns = {name: column[begin:end] for name, column in keys.items()}
            self.parts.append(
                packed(self.codec, sides[begin:end], columns, times[begin:end], self.generator)
            )
            if end < len(times):
                self.mask()
                self.turns()
                inner = "INNER" in self.manifest.operations and not self.overflow
                if inner and self.generator.random() < 0.5:  # otherwise, SEGMENT ends the rounds
                    self.inner()


def random_scenario(
    manifest, seed, *, tuples=80, segments=3, overflow=False, every_core=False, period=None
):
    """Return a scenario of several segments, each with its own configuration.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    seed : int
        Seed of all random choices.
    tuples : int
        Largest number of tuples in a segment.
    segments : int
        Number of segments.
    overflow : bool
        Whether time-based windows may outgrow the cores.
    every_core : bool
        Whether all cores take turns all the time, so that a count-based window of any size fits.
    period : int, optional
        Probes per star; random by default. If zero or more than ``probes``, the order is free.
    """
    writer = Writer(manifest, seed, overflow=overflow, every_core=every_core)
    if period is None:
        period = writer.choose([1, 1, manifest.probes, max(1, manifest.probes // 2)])
    writer.control("PRECISION", 0, period)
    writer.period = period
    for _ in range(segments):
        writer.segment(tuples)
    free = period == 0 or period > manifest.probes
    return Scenario(writer.words(), free=free, marks=writer.marks, faulty=overflow)
