# SPDX-License-Identifier: Apache-2.0
"""Random scenarios: changes of configuration, and words that no host would send."""

from itertools import cycle, pairwise

import numpy as np

from host.bucket_hash import SEED_BITS
from host.buckets import Coordinate
from host.words import WordCodec

from .illegal import illegal_word
from .scenario import Scenario

__all__ = ["hostile_scenario", "random_scenario"]

#: How the sides of tuples follow one another.
SHAPES = ("random", "alternating", "bursts", "only_r", "only_s", "empty")


def sides_of(shape, count, generator):
    """Sides of ``count`` tuples."""
    if shape == "alternating":
        return np.arange(count) % 2
    if shape == "bursts":
        return np.repeat(generator.integers(0, 2, count), generator.integers(1, 40, count))[:count]
    if shape in ("only_r", "only_s"):
        return np.full(count, int(shape == "only_s"))
    return generator.integers(0, 2, count)


def packed(codec, sides, keys, times, generator):
    """The words of tuples; where two can share one, not all neighbours that could do."""
    ends = [len(sides)]
    if codec.manifest.tuples_per_word == 2:
        cuts = generator.random(len(sides)) < generator.choice([0, 0.2, 0.8])
        ends = [*np.flatnonzero(cuts), *ends]
    parts = []
    for begin, end in pairwise([0, *ends]):
        columns = {name: column[begin:end] for name, column in keys.items()}
        own = sides[begin:end].astype(np.uint8)
        parts.append(codec.pack_tuples(own, columns, times[begin:end]))
    return np.concatenate(parts)


def random_scenario(manifest, seed, *, tuples=80, segments=3, overflow=False, period=None):
    """Make a scenario of some segments, each with a configuration of its own.

    Parameters
    ----------
    manifest : Manifest
        Of the accelerator.
    seed : int
        Same seed, same scenario.
    tuples : int
        Most tuples in a segment.
    segments : int
        Configurations.
    overflow : bool
        Let time-based windows outgrow the cores.
    period : int, optional
        Probes from star to star; random if left out. Over ``probes``, or zero, order is free.
    """
    generator = np.random.default_rng(seed)
    codec = WordCodec(manifest)
    capacity = manifest.capacity
    parts = []
    marks = 0
    if period is None:
        period = int(generator.choice([1, 1, manifest.probes, max(1, manifest.probes // 2)]))
    free = period == 0 or period > manifest.probes

    def control(op, index=0, value=0):
        nonlocal marks
        parts.append(codec.pack_control(op, index, value))
        marks += op in ("CLEAR", "FLUSH", "PRECISION")

    def coordinates(fixed):
        """Random parts of the fields in a bucket; hashes for those whose bounds stay equal."""
        place, left = 0, manifest.index.bucket_bits
        absurd = generator.random() < 0.4  # parts that overlap, or reach beyond the last bit
        for index in range(0 if absurd else len(manifest.keys)):
            control("COORDINATE", index, 0)
        for index, key in enumerate(manifest.keys):
            width = int(generator.integers(0, left + 1))
            shift = int(generator.integers(0, min(4, key.bits) + 1))
            part = Coordinate(shift, width, place, hashed=False)
            if fixed and generator.random() < 0.7:
                part = Coordinate(hashed=True, seed=int(generator.integers(0, 1 << SEED_BITS)))
            control("COORDINATE", index, part.value(manifest))
            if not absurd:
                place, left = place + part.width, left - part.width
            else:
                place = int(generator.integers(0, left + 1))

    control("PRECISION", 0, period)
    for _ in range(segments):
        wide = int(generator.choice([0, 1, 3, 40]))
        changes = generator.random() < 0.3
        if manifest.engine == "index" and manifest.comparator == "band":
            coordinates(wide == 0 and not changes)
        elif manifest.engine == "index":
            for index in range(len(manifest.keys)):
                control("COORDINATE", index, int(generator.integers(0, 1 << SEED_BITS)))
        if manifest.comparator == "band":
            for index, key in enumerate(manifest.keys):
                most = (1 << key.bits) - 1  # the host clamps bounds, so does this
                control("BOUND_LOW", index, -min(wide, most))
                control("BOUND_HIGH", index, min(int(generator.integers(0, wide + 1)), most))
        timed = bool(manifest.timestamp_bits) and generator.random() < 0.5
        count = int(generator.integers(0, tuples + 1))
        shape = str(generator.choice(SHAPES))
        if shape == "empty":
            count = 0
        # Time-based windows hold at most a quarter of the capacity, unless overflow is wanted.
        pace = int(generator.choice([1, 2, 5]))
        lifespan = int(generator.integers(0, max(1, pace * capacity // 4)))
        if overflow:
            lifespan *= 8
        for side in range(2):
            if timed:
                control("LIFESPAN", side, lifespan)
            else:
                size = generator.choice([1, capacity, int(generator.integers(1, capacity + 1))])
                control("WINDOW", side, int(size))
        control("CLEAR")
        values = int(generator.choice([1, 2, 12, 60]))
        keys = {
            key.name: np.clip(generator.integers(0, values, count) - values // 2, key.low, key.high)
            for key in manifest.keys
        }
        steps = np.full(count, pace)
        if not overflow and timed:
            steps = generator.choice([pace, pace, 2 * pace], count)
        time = np.cumsum(steps).astype(np.int64)
        parts.append(packed(codec, sides_of(shape, count, generator), keys, time, generator))
        if manifest.comparator == "band" and changes:
            control("BOUND_HIGH", 0, int(generator.integers(-1, 3)))
            sides = sides_of("random", 10, generator)
            columns = {
                name: np.resize(column, 10) if count else np.zeros(10, np.int64)
                for name, column in keys.items()
            }
            times = (time[-1] if count else 0) + pace * np.arange(1, 11)
            parts.append(packed(codec, sides, columns, times, generator))
        control("FLUSH")
    words = np.concatenate([part.reshape(-1, parts[0].shape[-1]) for part in parts])
    return Scenario(words, free=free, marks=marks, faulty=overflow)


def hostile_scenario(manifest, seed, *, tuples=80, overflow=False, share=0.1):
    """Make a scenario with words at random places that no host would send, and one after it.

    They are illegal, or control words with any value of their field. The scenario that follows
    begins with CLEAR, as all do, and has nothing of the kind in it.

    Parameters
    ----------
    manifest, seed, tuples, overflow
        As for :func:`random_scenario`. Without ``overflow``, no lifespan is a long one.
    share : float
        How many such words there are for one of the others.
    """
    generator = np.random.default_rng([seed, 1])
    codec = WordCodec(manifest)
    bits = manifest.input_word["control.value"].bits
    marks = 0
    kinds = [*manifest.operations, *["ILLEGAL"] * 8]
    kinds = cycle(generator.permutation(kinds).tolist())

    def any_value():
        extremes = (0, 1, -1, manifest.capacity + 1, (1 << bits - 1) - 1, -(1 << bits - 1))
        if generator.random() < 0.5:
            return int(extremes[generator.integers(len(extremes))])
        return int(generator.integers(0, 1 << min(bits, 62))) - (1 << min(bits, 62) - 1)

    def inserted():
        nonlocal marks
        name = next(kinds)
        if name == "ILLEGAL":
            return [illegal_word(manifest, generator)]
        index, value = int(generator.integers(manifest.indices[name])), any_value()
        marks += name in ("CLEAR", "FLUSH", "PRECISION")
        if name == "PRECISION":
            value = int(generator.integers(1, manifest.probes + 1))
        if name == "LIFESPAN" and not overflow:
            value = min(value, 1)
        if name == "DISTINCT":  # it would be a lie
            value &= ~1
        if name == "COORDINATE":  # any part, but no hash, which has to suit the bounds
            hashed = manifest.index.coordinate.fields["hashed"]
            value &= ~(((1 << hashed.bits) - 1) << hashed.offset)
        words = [codec.pack_control(name, index, value)]
        if name.startswith("BOUND") and "COORDINATE" in manifest.indices:
            words.insert(0, codec.pack_control("COORDINATE", index, 0))
        return words

    scenario = random_scenario(manifest, seed, tuples=tuples, overflow=overflow)
    following = random_scenario(manifest, seed + 1, tuples=tuples)
    words = []
    for word in scenario.words:
        while generator.random() < share / (1 + share):
            words += inserted()
        words.append(word.reshape(1, -1))
    return Scenario(
        np.concatenate([*words, following.words]),
        free=False,
        marks=scenario.marks + marks + following.marks,
        faulty=overflow,
    )
