# SPDX-License-Identifier: Apache-2.0
"""A scenario in which words of every kind wait behind a busy accelerator, in each state of windows.

Each of them comes right behind tuples of one key, whose matches take longer than the words do: so
it is refused for a while, also where its own answer is short. The crosses of
:mod:`sim.scenarios.crosses` are met so that chance alone hardly meets.
"""

import numpy as np

from host.protocol.codecs import WordCodec
from host.protocol.configuration import MARKS, configuration
from host.query.ordering import Ordering
from host.reference.predicate import Bounds
from host.reference.window import CountWindow, TimeWindow

from .illegal import illegal_word
from .random_words import random_values
from .scenario import Scenario

__all__ = ["busy_scenario"]

#: Words of each side in a window of rows, and most of them in one of time, if there is room.
HELD = 16
#: Largest difference of the times of a pair in a window of time.
LIFESPAN = 4
#: Times that windows are emptied in a row, so that what follows waits for the first ones.
CLEARS = 4
#: Words without meaning that come in a row are fewer.
MOST_FILLED = 8
R, S = 0, 1


class _Writer:
    """Writer of words behind a load of tuples that all match.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    generator : numpy.random.Generator
        Generator of values, and of words without meaning.

    Attributes
    ----------
    parts : list of array
        The words so far.
    marks : int
        Marks that answer them.
    """

    def __init__(self, manifest, generator):
        self.manifest, self.generator = manifest, generator
        self.codec = WordCodec(manifest)
        most = HELD * manifest.tuples_per_word
        self.held = max(4, min(most, manifest.capacity // 2))
        self.pairs = ((R,), (S,), *(((R, S),) if manifest.tuples_per_word == 2 else ()))
        self.parts, self.marks, self.now = [], 0, 0

    def configure(self, window, ordering):
        """Begin a query, whose windows are empty."""
        bounds = {key.name: Bounds(0, 0) for key in self.manifest.keys}
        self.parts.append(configuration(self.manifest, bounds, window, ordering))
        self.marks += MARKS
        self.ordering, self.now = ordering, 0

    def tuples(self, sides, times):
        """Send tuples of one key."""
        count = len(sides)
        keys = {key.name: np.full(count, min(key.high, 3)) for key in self.manifest.keys}
        if not self.manifest.timestamp_bits:
            times = np.zeros(count, np.int64)
        values = random_values(self.manifest, count, self.generator)
        self.parts.append(self.codec.pack_tuples(np.array(sides), keys, np.array(times), values))

    def load(self, count):
        """Send tuples of both sides in turn, the first two a little before the others."""
        times = np.full(count, self.now + LIFESPAN // 2)
        times[:2] = self.now
        self.tuples(np.arange(count) % 2, times)
        self.now += LIFESPAN // 2

    def fill(self):
        """Send some words without meaning; queues take several at once, and the next one waits."""
        for _ in range(self.generator.integers(1, MOST_FILLED)):
            self.parts.append(illegal_word(self.manifest, self.generator))

    def control(self, name, value=0):
        """Send a control word that is answered by a mark."""
        self.parts.append(self.codec.pack_control(name, 0, value))
        self.marks += 1

    def others(self):
        """Send words without meaning, and a control word that changes nothing."""
        self.fill()
        rounds = self.ordering.rounds if self.ordering.in_hardware else 0
        self.control(*(("INNER", rounds) if rounds else ("PRECISION", self.ordering.period)))
        self.parts.append(illegal_word(self.manifest, self.generator))

    def meet_rows(self):
        """Let all kinds of words meet windows that are empty, growing and full."""
        for sides in (*self.pairs, ()):
            self.load(2 * self.held)
            for _ in range(CLEARS):
                self.control("CLEAR")
            self.fill()
            if sides:
                self.tuples(sides, [self.now] * len(sides))
            else:
                self.others()
        self.load(2 * (self.held - len(self.pairs)))
        for sides in self.pairs:
            self.others()
            self.tuples(sides, [self.now] * len(sides))
        self.load(2 * self.held)
        for sides in self.pairs:
            self.fill()
            self.tuples(sides, [self.now] * len(sides))
            self.others()

    def meet_ages(self):
        """Let all kinds of words meet tuples that are young, about to expire, and expired."""
        for older in (0, LIFESPAN // 2, LIFESPAN // 2 + 1, LIFESPAN + 1):
            for sides in self.pairs:
                self.control("CLEAR")
                self.load(2 * self.held)
                self.fill()
                self.now += older
                self.tuples(sides, [self.now] * len(sides))
                self.others()


def busy_scenario(manifest, generator):
    """Return the scenario.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    generator : numpy.random.Generator
        Generator of values, and of words without meaning.
    """
    writer = _Writer(manifest, generator)
    rare = 1 << manifest.probe_bits
    orderings = [Ordering(period) for period in sorted({1, manifest.probes, rare, 0})]
    if "INNER" in manifest.operations:
        orderings.append(Ordering.inner(1, in_hardware=True))
    for ordering in orderings:
        writer.configure(CountWindow(writer.held), ordering)
        writer.meet_rows()
        if manifest.timestamp_bits:
            writer.configure(TimeWindow(LIFESPAN), ordering)
            writer.meet_ages()
    writer.control("FLUSH")
    return Scenario(np.concatenate(writer.parts), marks=writer.marks, free=True)
