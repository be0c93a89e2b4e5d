# SPDX-License-Identifier: Apache-2.0
"""Random scenarios that contain words which no host would send."""

from itertools import cycle

import numpy as np

from host.protocol.bit_fields import unpack_field
from host.protocol.codecs import WordCodec

from .illegal import illegal_word
from .random_words import MARKED, random_scenario
from .scenario import Scenario

__all__ = ["hostile_scenario"]


class Intruders:
    """Generator of illegal words, and of control words with any value in their field.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    generator : numpy.random.Generator
    overflow : bool
        Whether lifespans may be long.
    windows : bool
        Whether count-based windows may have any size, not only one that each core holds.

    Attributes
    ----------
    marks : int
        Number of words so far that are answered by a mark.
    """

    def __init__(self, manifest, generator, *, overflow, windows):
        self.manifest = manifest
        self.generator = generator
        self.overflow = overflow
        self.windows = windows
        self.codec = WordCodec(manifest)
        # With fewer cores, a window of any size may overflow, and after an overflow rounds mean
        # nothing.
        left_out = ("INNER",) if overflow else ("CORE", "SEGMENT")
        # A core that takes part again needs its configuration.
        left_out = (*left_out, "UNMASK")
        legal = [name for name in manifest.operations if name not in left_out]
        kinds = [*legal, *["ILLEGAL"] * 8]
        self.kinds = cycle(generator.permutation(kinds).tolist())
        self.marks = 0

    def words(self):
        """Return the next words. A bound is preceded by the COORDINATE word that it requires."""
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
        """Return a value of the field, which is often an extreme one."""
        bits = self.manifest.input_word["control.value"].bits
        most = 1 << bits - 1
        extremes = (0, 1, -1, self.manifest.capacity + 1, most - 1, -most)
        if self.generator.random() < 0.5:
            return int(extremes[self.generator.integers(len(extremes))])
        return int(self.generator.integers(0, 1 << min(bits, 62))) - (1 << min(bits, 62) - 1)

    def bearable(self, name, value):
        """Return a value close to ``value`` with which the answer is still determined."""
        if name == "PRECISION":
            return int(self.generator.integers(1, self.manifest.probes + 1))
        if name == "LIFESPAN" and not self.overflow:
            return min(value, 1)
        if name == "WINDOW" and not self.windows:
            # Each of up to five segments may leave one tuple more in a core than an even share.
            return value % max(1, self.manifest.storage.sub_window - 5)
        if name == "DISTINCT":  # a promise that the keys would not keep
            return value & ~1
        if name == "COORDINATE":  # no hash, because a hash has to suit the bounds
            hashed = self.manifest.index.coordinate.fields["hashed"]
            return value & ~(((1 << hashed.bits) - 1) << hashed.offset)
        return value


def cores_in(manifest, words):
    """Return which words are CORE."""
    kinds, operations = (
        unpack_field(words, manifest.input_word[field]) for field in ("kind", "control.op")
    )
    is_control = kinds == manifest.input_kinds["CONTROL"]
    return is_control & (operations == manifest.operations.get("CORE", -1))


def hostile_scenario(manifest, seed, *, tuples=80, overflow=False, share=0.1):
    """Return a scenario with words that no host would send, followed by an ordinary scenario.

    The following scenario begins with CLEAR, as all do, and contains no such words.

    Parameters
    ----------
    manifest, seed, tuples, overflow
        As for :func:`sim.scenarios.random_words.random_scenario`. Without ``overflow``, lifespans
        are short.
    share : float
        Number of such words per word of the ordinary kind.
    """
    generator = np.random.default_rng([seed, 1])
    # All cores together hold a window of any size, because they hold the largest that there is.
    windows = overflow or bool(generator.random() < 0.5)
    intruders = Intruders(manifest, generator, overflow=overflow, windows=windows)
    scenario = random_scenario(
        manifest, seed, tuples=tuples, overflow=overflow, every_core=windows and not overflow
    )
    following = random_scenario(manifest, seed + 1, tuples=tuples)
    words, lists_cores = [], False
    for word, is_core in zip(scenario.words, cores_in(manifest, scenario.words), strict=True):
        # A CLEAR would empty a list of cores, so that few were left to hold a window.
        while (overflow or not lists_cores) and generator.random() < share / (1 + share):
            words += intruders.words()
        words.append(word.reshape(1, -1))
        lists_cores = is_core
    return Scenario(
        np.concatenate([*words, following.words]),
        free=False,
        marks=scenario.marks + intruders.marks + following.marks,
        faulty=overflow,
    )
