# SPDX-License-Identifier: Apache-2.0
"""Named scenarios: each has one query, and keys, sides and times of one kind."""

from dataclasses import dataclass

import numpy as np

from host.protocol.buckets import bucket_plan
from host.protocol.cells import cell_plan
from host.protocol.codecs import WordCodec
from host.protocol.configuration import MARKS, configuration
from host.query.ordering import Ordering
from host.reference.predicate import Bounds
from host.reference.window import CountWindow, TimeWindow

from .busy_words import busy_scenario
from .collisions import colliding
from .hostile_words import hostile_scenario
from .illegal import illegal_word
from .random_words import random_scenario, random_values
from .scenario import Scenario

__all__ = ["BURST", "STRIDE", "make_scenario", "names"]

#: Number of tuples of one side in a burst.
BURST = 256
#: Smallest and largest value of the kind "few".
FEW = -12, 12
#: Largest value of a Zipf distribution.
MOST = 1 << 16
#: Distance between values that are multiples.
STRIDE = 16
#: Number by which timestamps go back.
BACK = 5


@dataclass(frozen=True)
class Workload:
    """Description of a named scenario.

    Parameters
    ----------
    keys : str
        ``"few"`` values, one ``"hot"`` key, ``"zipf"``, ``"sorted"``, ``"extremes"`` of the fields,
        ``"strides"``, keys that are ``"colliding"`` in the engine, or keys that are ``"apart"``, so
        that R and S never match.
    sides : str or float
        ``"bursts"``, or the share of R among the tuples.
    window : str
        ``"all"`` for the capacity of the cores, ``"one"`` for one tuple, or ``"time"``.
    times : str
        ``"steady"``; ``"leaps"``, by which a whole window expires; ``"crowded"``, so that a window
        outgrows the cores; or ``"back"``, which goes back once.
    width : int
        Largest difference that matches, if the comparator has bounds.
    period : str
        A star for ``"each"`` probe, for each ``"group"``, ``"rare"`` stars, or ``"none"``.
    rounds : int
        Stored tuples of a core in a round, in which the results of a probe come; zero for none.
    illegal : bool
        Whether illegal words stand between those of the tuples.
    """

    keys: str = "few"
    sides: str | float = 0.5
    window: str = "all"
    times: str = "steady"
    width: int = 2
    period: str = "each"
    rounds: int = 0
    illegal: bool = False


WORKLOADS = {
    "few values": Workload(),
    "one hot key": Workload("hot"),
    "no match": Workload("apart"),
    "Zipf": Workload("zipf", width=0, period="group"),
    "sorted": Workload("sorted"),
    "extremes": Workload("extremes", width=0),
    "strides": Workload("strides", period="group"),
    "collisions": Workload("colliding", width=0),
    "collisions in a grid": Workload("colliding"),
    "bursts": Workload("zipf", sides="bursts", period="group"),
    "one side only": Workload(sides=1.0),
    "mostly S": Workload(sides=0.1),
    "a window of one": Workload(window="one", width=4),
    "groups": Workload(period="group"),
    "rare stars": Workload(period="rare", illegal=True),
    "no stars": Workload(period="none", illegal=True),
    "rounds": Workload("zipf", rounds=1),
    "longer rounds": Workload(rounds=2),
    "rounds in time": Workload(window="time", rounds=1, sides=0.6),
    "words without meaning": Workload(illegal=True),
    "time": Workload(window="time", times="leaps"),
    "time, rare stars": Workload(window="time", times="leaps", period="rare", illegal=True),
    "time, mostly R": Workload(
        sides=0.9, window="time", times="leaps", width=4, period="none", illegal=True
    ),
    "leaps in time": Workload(window="time", times="leaps", period="group"),
    "overflow": Workload(window="time", times="crowded"),
    "disorder": Workload(window="time", times="back"),
}
#: Scenarios that are not workloads: one without tuples, one in which words of all kinds wait,
#: random ones, and random ones in which words of all kinds stand between any two others.
OTHERS = ("nothing", "busy", "random", "random without order", "hostile", "hostile again")


def names(manifest):
    """Return the names of the scenarios that an accelerator can run."""
    timed = manifest.timestamp_bits > 0
    return [
        *(
            name
            for name, load in WORKLOADS.items()
            if (timed or load.window != "time")
            and (not load.rounds or "INNER" in manifest.operations)
        ),
        *OTHERS,
    ]


def make_scenario(manifest, name, *, tuples, seed):
    """Return the scenario ``name``; the same seed gives the same scenario.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    name : str
        One of the names returned by :func:`names`.
    tuples : int
        Approximate number of tuples; the scenario of bursts has twice as many.
    seed : int
        Seed of all random choices.
    """
    generator = np.random.default_rng([seed, *name.encode()])
    if name in WORKLOADS:
        return workload(manifest, WORKLOADS[name], tuples, generator)
    if name == "busy":
        return busy_scenario(manifest, generator)
    seed = int(generator.integers(1 << 32))
    if name == "nothing":
        return workload(manifest, Workload(), 0, generator)
    if name.startswith("hostile"):
        return hostile_scenario(manifest, seed, tuples=tuples // 2, share=0.3)
    period = {"period": 0} if name.endswith("without order") else {}
    return random_scenario(manifest, seed, tuples=tuples // 2, **period)


def workload(manifest, load, count, generator):
    """Return the scenario of a workload with ``count`` tuples."""
    if load.sides == "bursts":
        count *= 2
    codec = WordCodec(manifest)
    width = load.width if manifest.bounded else 0
    bounds = {key.name: Bounds(-width, width) for key in manifest.keys}
    window = window_of(manifest, load)
    period = period_of(manifest, load)
    sides = sides_of(load, count, generator)
    keys = keys_of(manifest, load.keys, bounds, sides, generator)
    times = times_of(manifest, load.times, count, window, generator)
    words = codec.pack_tuples(sides, keys, times, random_values(manifest, count, generator))
    if load.illegal:
        words = with_illegal(manifest, words, generator)
    ordering = Ordering(period)
    if load.rounds:
        ordering = Ordering.inner(load.rounds, in_hardware=True)
    parts = [configuration(manifest, bounds, window, ordering), words]
    parts.append(codec.pack_control("FLUSH"))
    return Scenario(
        np.concatenate(parts),
        marks=MARKS + 1,
        free=not 1 <= period <= manifest.probes,
        faulty=load.times in ("crowded", "back"),
    )


def window_of(manifest, load):
    """Return the window of both sides; a time-based one has room for two tuples per timestamp."""
    return {
        "all": CountWindow(manifest.capacity),
        "one": CountWindow(1),
        "time": TimeWindow(max(0, manifest.capacity // 4 - 1)),
    }[load.window]


def period_of(manifest, load):
    """Return the number of probes per star; zero for no stars."""
    rare = 1 << manifest.probe_bits
    return {"each": 1, "group": manifest.probes, "rare": rare, "none": 0}[load.period]


def sides_of(load, count, generator):
    """Return the sides of ``count`` tuples."""
    if load.sides == "bursts":
        return (np.arange(count) // min(BURST, count // 3 + 1) % 2).astype(np.uint8)
    return (generator.random(count) >= load.sides).astype(np.uint8)


def dtype_of(key):
    """Return the NumPy type of a field's values."""
    return np.int64 if key.signed else np.uint64


def keys_of(manifest, kind, bounds, sides, generator):
    """Return the keys of tuples with the given sides."""
    count = len(sides)

    def uniform(count):
        return {
            key.name: generator.integers(key.low, key.high, count, dtype_of(key), endpoint=True)
            for key in manifest.keys
        }

    if kind == "colliding":
        plan = ()
        if manifest.index is not None:
            plan = bucket_plan(manifest, bounds).values()
        elif manifest.digests is not None:
            plan = cell_plan(manifest, bounds)
        operands = {n: part.value(manifest) for n, part in enumerate(plan)}
        return colliding(manifest, operands, uniform, count, generator)

    ranks = generator.zipf(1.3, count)

    def column(key):
        low, high = max(key.low, FEW[0]), min(key.high, FEW[1])
        if kind == "few":
            return generator.integers(low, high + 1, count)
        if kind == "hot":
            return np.full(count, high)
        if kind == "zipf":
            return np.minimum(ranks, min(key.high, MOST))
        if kind == "sorted":
            return np.sort(generator.integers(0, min(key.high, count) + 1, count))
        if kind == "extremes":
            ends = [key.low, key.low + 1, key.high - 1, key.high]
            return generator.choice(np.array(ends, dtype_of(key)), count)
        if kind == "strides":
            return generator.integers(0, min(key.high // STRIDE, 32) + 1, count) * STRIDE
        assert kind == "apart"
        return np.where(sides == 0, low, high)

    return {key.name: column(key) for key in manifest.keys}


def times_of(manifest, kind, count, window, generator):
    """Return the timestamps of tuples; all are zero if the accelerator has no timestamps."""
    if not manifest.timestamp_bits:
        return np.zeros(count, np.int64)
    if isinstance(window, CountWindow):
        newest = (1 << manifest.timestamp_bits) - 1
        return np.minimum(np.cumsum(generator.integers(0, 3, count)), newest)
    if kind == "crowded":
        return np.zeros(count, np.int64)
    times = BACK + np.arange(count) // 2
    if kind == "leaps":
        times += np.arange(count) // (4 * window.lifespan + 8) * (window.lifespan + 1)
    if kind == "back":
        times[count // 2 :] -= BACK
    return times


def with_illegal(manifest, words, generator):
    """Return words with an illegal word behind about every tenth of them."""
    parts = []
    for word in words:
        parts.append(word.reshape(1, -1))
        if generator.random() < 0.1:
            parts.append(illegal_word(manifest, generator))
    return np.concatenate([words[:0], *parts])
