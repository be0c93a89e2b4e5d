# SPDX-License-Identifier: Apache-2.0
"""Streams for the benches, and the scoreboard that knows their answer."""

from dataclasses import dataclass

import numpy as np

from host.arrivals import Arrivals
from host.ordering import Ordering
from host.predicate import Bounds, DifferenceBand
from host.reference import reference_join
from host.storage import StorageRule
from host.streams.configuration import configuration
from host.window import CountWindow, TimeWindow
from host.words import WordCodec

__all__ = ["Scenario", "check", "make_scenario", "names"]

#: Name: window ("count", "one" or "time"), share of R, width of the band. Stars come after every
#: probe, but in those named `…no_order` as rarely as they can. `after_illegal` begins with words
#: that mean nothing.
SHAPES = {
    "count": ("count", 0.5, 2),
    "all_match": ("count", 0.5, None),
    "no_match": ("count", 0.5, -1),
    "one_sided": ("count", 1.0, 2),
    "mostly_s": ("count", 0.1, 2),
    "window_of_one": ("one", 0.5, 4),
    "time": ("time", 0.5, 2),
    "time_mostly_r": ("time", 0.9, 4),
    "no_order": ("count", 0.5, 2),
    "time_no_order": ("time", 0.5, 2),
    "empty": ("count", None, 2),
    "after_illegal": ("count", 0.5, 2),
}


@dataclass(frozen=True)
class Scenario:
    """Arrivals, a query, the probes from star to star, the words that ask it.

    So many of them, the first ones, are ``illegal``.
    """

    arrivals: Arrivals
    predicate: object
    window: object
    period: int
    words: np.ndarray
    illegal: int


def names(manifest):
    """Return the names of the scenarios that an accelerator can run."""
    if manifest.comparator != "band":
        raise ValueError("The benches need an accelerator with comparator 'band'")
    timed = manifest.timestamp_bits > 0
    return [name for name, (window, *_) in SHAPES.items() if timed or window != "time"]


def make_scenario(manifest, name, *, tuples, seed):
    """Return the scenario ``name``; the same seed gives the same one."""
    kind, share, width = SHAPES[name]
    generator = np.random.default_rng([seed, *name.encode()])
    count = 0 if share is None else tuples
    side = (generator.random(count) >= (share or 0.0)).astype(np.uint8)
    keys, bounds = {}, {}
    for index, key in enumerate(manifest.keys):
        low, high = max(key.low, -12), min(key.high, 12)
        keys[key.name] = generator.integers(low, high + 1, count)
        low, high = (None, None) if width is None else (-width, max(width, 0))
        if width == -1:  # no difference of the first field is that large
            low = high = (1 << key.bits) - 1 if index == 0 else 0
        bounds[key.name] = Bounds(low, high)
    steps = generator.integers(0, 3, count)
    time = np.cumsum(steps) % (1 << max(manifest.timestamp_bits, 1))
    time = np.maximum.accumulate(time) if manifest.timestamp_bits else None
    window = {
        "count": CountWindow(manifest.capacity),
        "one": CountWindow(1),
        "time": TimeWindow(max(0, manifest.capacity // 4 - 1)),
    }[kind]
    if kind == "time":  # at most two tuples per moment, so that the window fits
        time = np.arange(count) // 2
    arrivals = Arrivals(side, keys, time)
    predicate = DifferenceBand(bounds)
    period = 1 << manifest.probe_bits if name.endswith("no_order") else 1
    words = words_of(manifest, arrivals, bounds, window, period)
    illegal = 20 if name == "after_illegal" else 0
    words = np.concatenate([unknown_words(manifest, illegal), words])
    return Scenario(arrivals, predicate, window, period, words, illegal)


def unknown_words(manifest, count):
    """Return illegal words: all of their bits are set, or all but one if that is a known kind."""
    bits, columns = manifest.input_word.bits, manifest.input_word.columns
    number = (1 << bits) - 1
    if "BOTH" in manifest.input_kinds:  # then it is a control word of an unknown operation
        number ^= 1 << manifest.input_word["kind"].offset
    word = number.to_bytes(8 * columns, "little")
    return np.tile(np.frombuffer(word, "<u8"), (count, 1)).astype(np.uint64)


def words_of(manifest, arrivals, bounds, window, period):
    """Return the input words of a query and its tuples."""
    codec = WordCodec(manifest)
    parts = [configuration(manifest, bounds, window, Ordering(period))]
    parts.append(codec.pack_tuples(arrivals.side, arrivals.keys, arrivals.timestamp))
    parts.append(codec.pack_control("FLUSH"))
    return np.concatenate([part.reshape(-1, manifest.input_word.columns) for part in parts])


def check(manifest, scenario, words):
    """Compare result words, from the first mark to the third, with the reference join.

    Raises
    ------
    AssertionError
        If a star, a pair, its place in the order, or an error flag is wrong.
    """
    codec, rule = WordCodec(manifest), StorageRule.of(manifest)
    results = codec.unpack_results(codec.split_words(np.ascontiguousarray(words))[0])
    arrivals = scenario.arrivals
    matches = reference_join(
        arrivals, scenario.predicate, scenario.window, capacity=manifest.capacity
    )
    assert [int(kind) for kind in results.kind[:2]] == [codec.mark] * 2, "two marks come first"
    assert int(results.kind[-1]) == codec.mark, "a mark comes last"
    assert not results.overflow.any(), "no window has outgrown the cores"
    assert not results.disorder.any(), "time never went back"
    told = np.flatnonzero(results.illegal).tolist()
    assert told == ([0, 1] if scenario.illegal else []), "the mark of CLEAR is the last to tell it"
    body = slice(2, -1)
    stars = results.kind[body] == codec.star
    pairs = ~stars
    assert (stars | (results.kind[body] == codec.pair)).all()

    side = results.side[body]
    members = [np.flatnonzero(arrivals.side == owner) for owner in (0, 1)]
    probe = np.zeros(len(side), np.int64)
    for owner in (0, 1):
        mine = side == owner
        passed = np.cumsum(stars & mine)  # every star but the last ends a full period
        assert passed[-1:].sum() == -(-len(members[owner]) // scenario.period), "number of stars"
        found = mine & pairs
        index = scenario.period * passed[found] + results.probe[body][found]
        assert not len(index) or index.max() < len(members[owner]), "a pair of no probe"
        probe[found] = members[owner][index]
    probe = probe[pairs]

    before = np.zeros((2, len(arrivals) + 1), np.int64)
    for owner in (0, 1):
        before[owner, 1:] = np.cumsum(arrivals.side == owner)
    core, row, lane = (getattr(results, name)[body][pairs] for name in ("core", "row", "lane"))
    other = 1 - arrivals.side[probe].astype(np.int64)
    ordinal = rule.ordinals(before[other, probe], core, row, lane)
    stored = np.array([members[o][n] for o, n in zip(other, ordinal, strict=True)], np.int64)
    if scenario.period == 1:
        np.testing.assert_array_equal(side[stars], arrivals.side, "sides of the stars")
        np.testing.assert_array_equal(probe, np.cumsum(stars)[pairs], "places of the pairs")
        if manifest.engine == "scan":  # an index gives the pairs of a group in any order
            assert_ordered(probe, core, ordinal)
    order = np.lexsort((stored, probe))
    np.testing.assert_array_equal(probe[order], matches.probe, "probes of the pairs")
    np.testing.assert_array_equal(stored[order], matches.stored, "stored tuples of the pairs")


def assert_ordered(probe, core, ordinal):
    """Within a group, pairs come by core, then by age, the oldest first."""
    order = np.lexsort((ordinal, core, probe))
    assert (order == np.arange(len(order))).all(), "pairs of a group come by core, then by age"
