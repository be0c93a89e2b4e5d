# SPDX-License-Identifier: Apache-2.0
"""Neighbouring tuples or results of different sides that share a word."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from host.arrays import Bools, Int64s
from host.reference.arrivals import Side

__all__ = [
    "SidePlaces",
    "WordPlaces",
    "joined",
    "one_each",
    "seconds",
]


def seconds(sides: npt.NDArray[np.uint8], alone: Bools | None = None) -> Bools:
    """Return which elements of a sequence share a word with the element before them.

    From the front, an element shares a word with the next one if that belongs to the other side. In
    a stretch of alternating sides, every second element is therefore the second one of its word.
    The first element of a stretch follows an element of its own side, and never is.

    Parameters
    ----------
    sides : array of uint8
        Side of each element, 0 or 1.
    alone : array of bool, optional
        Elements that must not share a word.
    """
    count = len(sides)
    begins = np.ones(count, np.bool_)
    np.equal(sides[1:], sides[:-1], out=begins[1:])
    if alone is not None:
        begins[1:] |= alone[1:] | alone[:-1]
    starts = np.flatnonzero(begins)
    parity = np.repeat((starts & 1).astype(np.uint8), np.diff(starts, append=count))
    parity[1::2] ^= 1
    return parity.view(np.bool_)


@dataclass(frozen=True)
class SidePlaces:
    """The words of one side's tuples.

    Parameters
    ----------
    words : array of int64
        Word of each tuple, ascending.
    shares : array of uint8, optional
        0 for a tuple alone in its word, 1 for the first and 2 for the second tuple of a shared
        word. None if every tuple is alone in its word.
    """

    words: Int64s
    shares: npt.NDArray[np.uint8] | None = None

    def part(self, begin: int, end: int) -> "SidePlaces":
        """Return the places of the tuples from ``begin`` to ``end``."""
        shares = None if self.shares is None else self.shares[begin:end]
        return SidePlaces(self.words[begin:end], shares)


@dataclass(frozen=True)
class WordPlaces:
    """The words of both sides' tuples.

    Parameters
    ----------
    count : int
        Number of words.
    sides : mapping of Side to SidePlaces
        Places of the tuples of either side.
    """

    count: int
    sides: Mapping[Side, SidePlaces]


def one_each(places: Mapping[Side, Int64s], count: int) -> WordPlaces:
    """Give each of ``count`` tuples its own word; ``places`` are those among all tuples."""
    return WordPlaces(count, {side: SidePlaces(at) for side, at in places.items()})


def joined(places: Mapping[Side, Int64s], count: int) -> WordPlaces:
    """Let neighbours of different sides share words, from the front; see :func:`seconds`."""
    if any(not len(places.get(side, ())) for side in Side):
        return one_each(places, count)
    sides = np.zeros(count, np.uint8)
    sides[places[Side.S]] = 1
    second = seconds(sides)
    before = np.cumsum(second, dtype=np.int32)  # shared words up to here
    share = 2 * second.view(np.uint8)
    share[:-1] += second[1:]
    return WordPlaces(
        count - int(before[-1]),
        {side: SidePlaces(at - before.take(at), share.take(at)) for side, at in places.items()},
    )
