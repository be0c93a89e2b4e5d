# SPDX-License-Identifier: Apache-2.0
"""Programs for chains of cores, and the pairs between two marks that the reference join finds."""

import numpy as np

from host.protocol.codecs import WordCodec
from sim.scenarios.chain_answers import ChainJoin

__all__ = ["Program", "random_program"]


class Program:
    """Words for a chain, in order, and what it must answer.

    Parameters
    ----------
    manifest : Manifest
        Of the chain.

    Attributes
    ----------
    words : list
    answer : sim.scenarios.chain_answers.ChainAnswer
    """

    def __init__(self, manifest):
        self.manifest, self.words = manifest, []
        self._codec, self._join = WordCodec(manifest), ChainJoin(manifest)
        self.answer = self._join.answer

    def control(self, operation, index=0, value=0):
        """Add a control word."""
        self.words.append(self._codec.pack_control(operation, index, value))
        self._join.control(operation, index, value)

    def tuples(self, sides, keys, times):
        """Add tuples; ``keys`` has a list for each of them."""
        names = [key.name for key in self.manifest.keys]
        columns = {name: np.array([key[n] for key in keys]) for n, name in enumerate(names)}
        arrays = np.array(sides), columns, np.array(times)
        self.words.append(self._codec.pack_tuples(*arrays))
        self._join.tuples(*arrays)

    def illegal(self, word):
        """Add a word that the ingress drops, as an integer."""
        columns = self.manifest.input_word.columns
        parts = [word >> 64 * n & (1 << 64) - 1 for n in range(columns)]
        self.words.append(np.array([parts], np.uint64))
        self._join.illegal()

    def packed(self):
        """Return the words as rows."""
        return np.concatenate(self.words)


def random_program(manifest, seed, *, tuples=40, blocks=2, timed=False, spread=2):
    """Return a random program: bursts of a side, alternating ones, none, small windows and large.

    Parameters
    ----------
    manifest : Manifest
        Of a chain.
    seed : int
    tuples : int
        Of every block, about.
    blocks : int
        Parts with other windows and bounds.
    timed : bool
        Whether windows may be time-based.
    spread : int
        The least and greatest key.
    """
    rng = np.random.default_rng(seed)
    program, now = Program(manifest), 0
    for _ in range(blocks):
        for index in range(len(manifest.keys)):
            program.control("BOUND_LOW", index, -int(rng.integers(0, 2)))
            program.control("BOUND_HIGH", index, int(rng.integers(0, 2)))
        by_time = timed and rng.random() < 0.7
        for side in range(2):
            if by_time and rng.random() < 0.8:  # so short that no more fit than there is room for
                program.control("LIFESPAN", side, int(rng.integers(0, manifest.capacity - 1)))
            else:
                program.control("WINDOW", side, int(rng.integers(1, manifest.capacity + 1)))
        program.control("PRECISION", 0, int(rng.integers(0, 3)))
        program.control("CLEAR")
        now = 0
        for _ in range(int(rng.integers(1, 3))):
            share, sides = rng.choice([0.0, 0.1, 0.5, 0.5, 0.9, 1.0]), []
            while len(sides) < rng.integers(0, tuples + 1):
                sides += [int(rng.random() < share)] * int(rng.choice([1, 1, 1, 2, 7]))
            times = now + np.cumsum(np.ones(len(sides), np.int64))
            now = int(times[-1]) if len(sides) else now
            low = [0 if not key.signed else -spread for key in manifest.keys]
            keys = [[int(rng.integers(least, spread + 1)) for least in low] for _ in sides]
            if sides:
                program.tuples(sides, keys, [int(time) for time in times])
            program.control("FLUSH")
    return program
