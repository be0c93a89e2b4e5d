# SPDX-License-Identifier: Apache-2.0
"""Texts as rows of word numbers: drawn with the frequencies of English, or a text that is free.

The free text is Abraham Lincoln's address at Gettysburg (1863), which is in the public domain.
"""

from dataclasses import dataclass
from pathlib import Path
import re

import numpy as np

__all__ = ["SOURCES", "Texts", "address", "english", "hashtags"]

#: Zipf's law with Mandelbrot's shift: the word of rank r occurs in proportion to (r + 2.7) ** -1.
SHIFT = 2.7
#: Most characters of a tweet.
MOST_CHARS = 280


@dataclass(frozen=True)
class Texts:
    """Texts whose words are numbered by how frequent they are, from 0 on.

    Parameters
    ----------
    words : array of int64
        A row per text, with zeros behind its last word.
    lengths : array of int64
        Words of each text.
    chars : array of int64
        Characters of each text.
    """

    words: np.ndarray
    lengths: np.ndarray
    chars: np.ndarray

    def columns(self):
        """Return the fields of the operators of :mod:`bench.experiments.text_operators`."""
        named = {f"word{n}": column for n, column in enumerate(self.words.T)}
        return {**named, "words": self.lengths, "chars": self.chars}

    def within(self, vocabulary):
        """Return the texts without the words beyond a vocabulary."""
        most = self.words.shape[1]
        kept = (np.arange(most) < self.lengths[:, None]) & (self.words < vocabulary)
        order = np.argsort(~kept, axis=1, kind="stable")
        words = np.take_along_axis(np.where(kept, self.words, 0), order, axis=1)
        return Texts(words, kept.sum(axis=1), self.chars)


def english(count, *, vocabulary, most, least=4, seed=25):
    """Return random texts of ``least`` to ``most`` words, with the frequencies of English."""
    generator = np.random.default_rng(seed)
    weights = 1 / (np.arange(vocabulary) + 1 + SHIFT)
    words = generator.choice(vocabulary, (count, most), p=weights / weights.sum())
    lengths = generator.integers(min(least, most), most + 1, count)
    chars = generator.integers(1, MOST_CHARS + 1, count)
    return Texts(np.where(np.arange(most) < lengths[:, None], words, 0), lengths, chars)


def hashtags(count, *, vocabulary, most):
    """Return random tweets of one to ``most`` hashtags, which are as frequent as words are."""
    return english(count, vocabulary=vocabulary, most=most, least=1)


def address(count, *, vocabulary, most):
    """Return the free text, over and over, in pieces of sentences of at most ``most`` words."""
    text = Path(__file__).with_name("address.txt").read_text(encoding="utf-8")
    sentences = [re.findall(r"[a-z]+", line.lower()) for line in text.splitlines()]
    spoken = [word for sentence in sentences for word in sentence]
    ranks = sorted(dict.fromkeys(spoken), key=lambda word: (-spoken.count(word), word))
    number = {word: rank for rank, word in enumerate(ranks)}
    pieces = [
        [number[word] for word in sentence[at : at + most]]
        for sentence in sentences
        for at in range(0, len(sentence), most)
    ]
    lengths = np.array([len(piece) for piece in pieces])
    size = np.array([len(word) + 1 for word in ranks])
    chars = np.array([size[piece].sum() - 1 for piece in pieces])
    words = np.array([piece + [0] * (most - len(piece)) for piece in pieces])
    again = np.arange(count) % len(pieces)
    return Texts(words[again], lengths[again], chars[again]).within(vocabulary)


#: Where texts come from.
SOURCES = {"english": english, "hashtags": hashtags, "address": address}
