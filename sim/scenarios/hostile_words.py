# SPDX-License-Identifier: Apache-2.0
"""Random scenarios with words in them that no host would send."""

from itertools import cycle

import numpy as np

from host.words import WordCodec

from .illegal import illegal_word
from .random_words import MARKED, random_scenario
from .scenario import Scenario

__all__ = ["hostile_scenario"]


class Intruders:
    """Makes words that are illegal, or control words with any value of their field.

    Parameters
    ----------
    manifest : Manifest
        Of the accelerator.
    generator : numpy.random.Generator
    overflow : bool
        Lifespans may be long ones.

    Attributes
    ----------
    marks : int
        Words so far that are answered with a mark.
    """

    def __init__(self, manifest, generator, *, overflow):
        self.manifest = manifest
        self.generator = generator
        self.overflow = overflow
        self.codec = WordCodec(manifest)
        kinds = [*manifest.operations, *["ILLEGAL"] * 8]
        self.kinds = cycle(generator.permutation(kinds).tolist())
        self.marks = 0

    def words(self):
        """Return the next such word; before one with a bound, one that its field needs then."""
        name = next(self.kinds)
        if name == "ILLEGAL":
            return [illegal_word(self.manifest, self.generator)]
        index = int(self.generator.integers(self.manifest.indices[name]))
        value = self.bearable(name, self.any_value())
        self.marks += name in MARKED
        words = [self.codec.pack_control(name, index, value)]
        if name.startswith("BOUND") and "COORDINATE" in self.manifest.indices:
            words.insert(0, self.codec.pack_control("COORDINATE", index, 0))
        return words

    def any_value(self):
        """Return a value of the field, often an extreme one."""
        bits = self.manifest.input_word["control.value"].bits
        most = 1 << bits - 1
        extremes = (0, 1, -1, self.manifest.capacity + 1, most - 1, -most)
        if self.generator.random() < 0.5:
            return int(extremes[self.generator.integers(len(extremes))])
        return int(self.generator.integers(0, 1 << min(bits, 62))) - (1 << min(bits, 62) - 1)

    def bearable(self, name, value):
        """Return a value with which the answer is still known."""
        if name == "PRECISION":
            return int(self.generator.integers(1, self.manifest.probes + 1))
        if name == "LIFESPAN" and not self.overflow:
            return min(value, 1)
        if name == "DISTINCT":  # it would be a lie
            return value & ~1
        if name == "COORDINATE":  # any part, but no hash, which has to suit the bounds
            hashed = self.manifest.index.coordinate.fields["hashed"]
            return value & ~(((1 << hashed.bits) - 1) << hashed.offset)
        return value


def hostile_scenario(manifest, seed, *, tuples=80, overflow=False, share=0.1):
    """Make a scenario with words at random places that no host would send, and one after it.

    The scenario that follows begins with CLEAR, as all do, and has nothing of the kind in it.

    Parameters
    ----------
    manifest, seed, tuples, overflow
        As for :func:`sim.scenarios.random_words.random_scenario`. Without ``overflow``, no lifespan
        is a long one.
    share : float
        How many such words there are for one of the others.
    """
    generator = np.random.default_rng([seed, 1])
    intruders = Intruders(manifest, generator, overflow=overflow)
    scenario = random_scenario(manifest, seed, tuples=tuples, overflow=overflow)
    following = random_scenario(manifest, seed + 1, tuples=tuples)
    words = []
    for word in scenario.words:
        while generator.random() < share / (1 + share):
            words += intruders.words()
        words.append(word.reshape(1, -1))
    return Scenario(
        np.concatenate([*words, following.words]),
        free=False,
        marks=scenario.marks + intruders.marks + following.marks,
        faulty=overflow,
    )
