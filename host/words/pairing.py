# SPDX-License-Identifier: Apache-2.0
"""Neighbours of different sides that share a word."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from host.side import Side

__all__ = ["SidePlaces", "WordPlaces", "joined", "one_each", "seconds"]

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]


def seconds(sides: npt.NDArray[np.uint8], alone: Bools | None = None) -> Bools:
    """Tell which elements of a sequence share a word with the one before them.

    From the front, an element shares a word with the next one if that is of the other side. So in
    a stretch of sides in turn every second element is the second one of its word, and the first
    element of a stretch, which follows one of its own side, is never.

    Parameters
    ----------
    sides : array of uint8
        0 or 1.
    alone : array of bool, optional
        Elements that share a word with nothing.
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
    """Where tuples of one side stand.

    Parameters
    ----------
    words : array of int64
        The word of each, ascending.
    shares : array of uint8, optional
        0 in a word of its own, 1 for the first tuple of a word, 2 for the second one. Without it,
        every tuple has a word of its own.
    """

    words: Int64s
    shares: npt.NDArray[np.uint8] | None = None

    def part(self, begin: int, end: int) -> "SidePlaces":
        """Return the places of some of the tuples."""
        shares = None if self.shares is None else self.shares[begin:end]
        return SidePlaces(self.words[begin:end], shares)


@dataclass(frozen=True)
class WordPlaces:
    """How tuples of both sides are laid out in words.

    Parameters
    ----------
    count : int
        Number of words.
    sides : mapping of Side to SidePlaces
        Where the tuples of either side stand.
    """

    count: int
    sides: Mapping[Side, SidePlaces]


def one_each(places: Mapping[Side, Int64s], count: int) -> WordPlaces:
    """Give each of ``count`` tuples a word; ``places`` are those of a side among all of them."""
    return WordPlaces(count, {side: SidePlaces(at) for side, at in places.items()})


def joined(places: Mapping[Side, Int64s], count: int) -> WordPlaces:
    """Let neighbours of different sides share words, from the front; else as :func:`one_each`."""
    if any(not len(places.get(side, ())) for side in Side):
        return one_each(places, count)
    sides = np.zeros(count, np.uint8)
    sides[places[Side.S]] = 1
    second = seconds(sides)
    before = np.cumsum(second, dtype=np.int32)  # pairs up to here
    share = 2 * second.view(np.uint8)
    share[:-1] += second[1:]
    return WordPlaces(
        count - int(before[-1]),
        {side: SidePlaces(at - before.take(at), share.take(at)) for side, at in places.items()},
    )
