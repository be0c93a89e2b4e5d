# SPDX-License-Identifier: Apache-2.0
"""Which kept rows have matched: a bit each, in the state beside the slices of rows.

The bits of a slice are a value of their own, so that marking a row does not rewrite the rows.
"""

import numpy as np
import numpy.typing as npt

from spark_offload.streaming.state_protocols import MapStore

__all__ = ["MatchedBits"]

Bools = npt.NDArray[np.bool_]
Slice = tuple[int, int]

_SIDES = 2
"""Added to the side in the keys of bits, which stand in the map of the rows."""


class MatchedBits:
    """The bits of a group, read when they are needed and written by :meth:`save`.

    Parameters
    ----------
    store : MapStore
        By side, number of the slice and number of the part, as that of the rows; bits have one
        part.
    """

    def __init__(self, store: MapStore) -> None:
        self._store = store
        self._bits: dict[Slice, Bools] = {}
        self._changed: set[Slice] = set()

    def of(self, place: Slice, count: int) -> Bools:
        """Return the bits of a slice of ``count`` rows."""
        if place not in self._bits:
            self._bits[place] = self._read(place, count)
        return self._bits[place]

    def mark(self, place: Slice, matched: Bools) -> None:
        """Some rows of a slice have matched."""
        bits = self.of(place, len(matched))
        if (matched & ~bits).any():
            self._bits[place] = bits | matched
            self._changed.add(place)

    def add(self, place: Slice, before: int, matched: Bools) -> None:
        """A slice of ``before`` rows has got more."""
        old = self.of(place, before) if before else np.zeros(0, np.bool_)
        self._bits[place] = np.concatenate([old, matched])
        self._changed.add(place)

    def remove(self, place: Slice) -> None:
        """A slice has gone."""
        self._store.removeKey(_key(place))
        self._bits.pop(place, None)
        self._changed.discard(place)

    def save(self) -> None:
        """Write what has changed."""
        for place in sorted(self._changed):
            self._store.updateValue(_key(place), (np.packbits(self._bits[place]).tobytes(),))
        self._changed.clear()

    def _read(self, place: Slice, count: int) -> Bools:
        value = self._store.getValue(_key(place))
        if value is None:
            raise RuntimeError(f"The state store has lost the bits of slice {place} of a group")
        blob = value[0]
        assert isinstance(blob, (bytes, bytearray))
        packed = np.frombuffer(bytes(blob), np.uint8)
        return np.unpackbits(packed, count=count).astype(np.bool_)


def _key(place: Slice) -> tuple[int, int, int]:
    return place[0] + _SIDES, place[1], 0
