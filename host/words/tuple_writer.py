# SPDX-License-Identifier: Apache-2.0
"""Write tuples into the words that a device is offered, column by column."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from host.manifest import Manifest
from host.reference.exact import UInt64s
from host.reference.side import Side
from host.words.bit_fields import mask
from host.words.pairing import SidePlaces, WordPlaces

__all__ = ["SHARED", "Blocks", "TupleWriter"]

Int64s = npt.NDArray[np.int64]

#: Prefix of the fields of a tuple of S that shares a word with a tuple of R.
SHARED = "both.s."

#: Number of rows that are computed and written at once, so that they stay in the processor's cache.
BLOCK = 1 << 13


class Blocks(Protocol):
    """A column whose rows are computed in blocks."""

    def block(self, rows: slice) -> UInt64s:
        """Return some rows, modulo 2**64, in a new array."""


class TupleWriter:
    """Writes tuples into words, one or two per word.

    Parameters
    ----------
    manifest : Manifest
        Manifest with the layout of the words.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._layout = manifest.input_word
        self._kinds = manifest.input_kinds
        self._two = manifest.tuples_per_word == 2
        self._headers = {side: self._first_columns(side) for side in Side}
        # Number of first columns that contain bits of R's tuple in a shared word.
        starts = [at.offset for name, at in self._layout.fields.items() if name.startswith(SHARED)]
        self._columns_of_r = -(-min(starts, default=0) // 64)

    def write(
        self,
        words: UInt64s,
        places: WordPlaces,
        fields: Mapping[Side, Mapping[str, Blocks]],
        begins: Mapping[Side, int],
    ) -> None:
        """See :meth:`host.words.input_codec.InputCodec.scatter`."""
        if self._two:
            words[...] = 0
        for side, at in sorted(places.sides.items()):
            begin = begins[side]
            for start in range(0, len(at.words), BLOCK):
                some = at.part(start, start + BLOCK)
                rows = slice(begin + start, begin + start + len(some.words))
                blocks = self._blocks(fields[side], rows)
                if self._two:
                    self._write_shared(words, some, side, blocks)
                else:
                    self._write_alone(words, some, side, blocks)

    def _first_columns(self, side: Side) -> UInt64s:
        """Return the bits of a word's first column besides its tuples, by a tuple's ``shares``.

        They hold the side of a tuple that is alone in its word, or the order of tuples that share
        it.
        """
        kind, first = self._layout["kind"].offset, self._layout.fields.get("first")
        headers = [self._kinds[side.name] << kind]
        if first is not None:
            both = self._kinds["BOTH"] << kind
            headers += [both, both | Side.S << first.offset]
        return np.array(headers, np.uint64)

    def _write_alone(
        self, words: UInt64s, at: SidePlaces, side: Side, blocks: dict[str, UInt64s]
    ) -> None:
        """Write tuples that are alone in their words; every column of a word is written once."""
        target = _target(at.words)
        columns = self._columns(blocks)
        _add_header(columns, self._headers[side][:1])
        for index in range(self._layout.columns):
            words[:, index][target] = columns.get(index, np.uint64(0))

    def _write_shared(
        self, words: UInt64s, at: SidePlaces, side: Side, blocks: dict[str, UInt64s]
    ) -> None:
        """Write tuples into words that are zero, or hold the tuples of R with which they share.

        A tuple of R has the same position in its word whether or not it shares the word. In either
        case, it sets the kind of the word.
        """
        shares = at.shares
        if side is Side.R or shares is None or not shares.any():
            columns = self._columns(blocks)
            headers = self._headers[side]
            _add_header(columns, headers[:1] if shares is None else headers[shares])
            _put(words, at.words, columns)
            return
        if not shares.all():
            alone, shared = np.flatnonzero(shares == 0), np.flatnonzero(shares)
            own = SidePlaces(at.words[alone])
            self._write_shared(words, own, side, _taken(blocks, alone))
            at, blocks = SidePlaces(at.words[shared]), _taken(blocks, shared)
        _put(words, at.words, self._columns(blocks, SHARED), kept=self._columns_of_r)

    def _blocks(self, fields: Mapping[str, Blocks], rows: slice) -> dict[str, UInt64s]:
        """Return the fields of some rows, cut to their widths; fields of zero bits are left out."""
        blocks = {}
        for name, values in fields.items():
            bits = self._layout[name].bits
            if bits:
                blocks[name] = values.block(rows)
                if bits < 64:
                    blocks[name] &= mask(bits)
        return blocks

    def _columns(self, blocks: Mapping[str, UInt64s], prefix: str = "") -> dict[int, UInt64s]:
        """Return those columns of words that contain any of the given fields."""
        columns: dict[int, UInt64s] = {}
        for name, block in blocks.items():
            place = self._layout[prefix + name]
            index, shift = divmod(place.offset, 64)
            parts = [(index, block << np.uint64(shift) if shift else block)]
            if shift + place.bits > 64:
                parts.append((index + 1, block >> np.uint64(64 - shift)))
            for at, part in parts:
                if at in columns:
                    columns[at] |= part
                else:
                    columns[at] = part
        return columns


def _add_header(columns: dict[int, UInt64s], header: UInt64s) -> None:
    """Add the header, one per word or one for all, to the first column."""
    if 0 in columns:
        columns[0] |= header
    else:
        columns[0] = header


def _taken(blocks: Mapping[str, UInt64s], rows: Int64s) -> dict[str, UInt64s]:
    return {name: block.take(rows) for name, block in blocks.items()}


def _put(words: UInt64s, at: Int64s, columns: Mapping[int, UInt64s], kept: int = 0) -> None:
    """Write columns of words; the first ``kept`` columns of a word keep their bits."""
    target = _target(at)
    for index, column in columns.items():
        of_words = words[:, index]  # NumPy is faster with a single index
        if index < kept:
            of_words[target] |= column
        else:
            of_words[target] = column


def _target(at: Int64s) -> Int64s | slice:
    """Return an index for ascending places: a slice, which is faster, if they are adjacent."""
    begin, end = int(at[0]), int(at[-1]) + 1
    return slice(begin, end) if end - begin == len(at) else at
