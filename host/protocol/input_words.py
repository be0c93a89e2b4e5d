# SPDX-License-Identifier: Apache-2.0
"""Input words as arrays of 64-bit numbers, one word per row: tuples and control words."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from host.arrays import Array, Bools, Int64s, UInt64s
from host.protocol.bit_fields import mask, require_fits, unpack_field
from host.protocol.manifest import BundleManifest, Manifest, Word
from host.protocol.pairing import SidePlaces, WordPlaces, joined, one_each
from host.reference.arrivals import Side

__all__ = [
    "Blocks",
    "BundleCodec",
    "InputCodec",
    "SHARED",
]


#: Prefix of the fields of a tuple of S that shares a word with a tuple of R.
SHARED = "both.s."

#: Number of rows that are computed and written at once, so that they stay in the processor's cache.
BLOCK = 1 << 13


class Blocks(Protocol):
    """A column whose rows are computed in blocks."""

    def block(self, rows: slice) -> UInt64s:
        """Return some rows, modulo 2**64, in a new array."""


class _Array:
    """An array of integers in the form of :class:`Blocks`."""

    def __init__(self, values: Array) -> None:
        self._values = values

    def block(self, rows: slice) -> UInt64s:
        return self._values[rows].astype(np.uint64)


class BundleCodec:
    """Packs control words, and reads the fields of results, of any accelerator.

    Parameters
    ----------
    manifest : BundleManifest
        Manifest with the layout of the words.

    Attributes
    ----------
    input, result : Word
        Layouts of an input word and of a result.
    """

    def __init__(self, manifest: BundleManifest) -> None:
        self.manifest = manifest
        self.input: Word = manifest.input_word
        self.result: Word = manifest.result_word

    def pack_control(self, operation: str, index: int = 0, value: int = 0) -> UInt64s:
        """Return the control word of an operation in the manifest, as one row.

        Raises
        ------
        UsageError
            If an operand has more bits than the word has for it.
        """
        operands = {
            "kind": self.manifest.input_kinds["CONTROL"],
            "control.op": self.manifest.operations[operation],
            "control.index": index,
            "control.value": value,
        }
        fields = {
            name: require_fits(self.input[name], int(operand), f"{operation}: {name}")
            for name, operand in operands.items()
            if name in self.input.fields  # an aggregate has no indices
        }
        row = self.input.number(fields).to_bytes(8 * self.input.columns, "little")
        return np.frombuffer(row, "<u8").reshape(1, -1).copy()

    def marks(self, results: UInt64s) -> Bools:
        """Return which words, or results, are marks; a mark is alone in its word."""
        kinds = unpack_field(results, self.result["kind"])
        marks: Bools = kinds == self.manifest.result_kinds["MARK"]
        return marks

    def fields(self, results: UInt64s) -> dict[str, Array]:
        """Return the fields of results, by their names in the layout."""
        return {name: unpack_field(results, place) for name, place in self.result.fields.items()}


class InputCodec(BundleCodec):
    """Packs and unpacks the input words of one accelerator.

    Parameters
    ----------
    manifest : Manifest
        Manifest with the layout of the words.
    """

    manifest: Manifest

    def __init__(self, manifest: Manifest) -> None:
        super().__init__(manifest)
        self._kinds = manifest.input_kinds
        self._two = manifest.tuples_per_word == 2
        self._headers = {side: self._first_columns(side) for side in Side}
        # Number of first columns that contain bits of R's tuple in a shared word.
        starts = [at.offset for name, at in self.input.fields.items() if name.startswith(SHARED)]
        self._columns_of_r = -(-min(starts, default=0) // 64)

    def places(self, places: Mapping[Side, Int64s], count: int) -> WordPlaces:
        """Decide which words ``count`` tuples are written to.

        Parameters
        ----------
        places : mapping of Side to array of int64
            For each side, the places of its tuples among all tuples, ascending.
        count : int
            Number of tuples.
        """
        return joined(places, count) if self._two else one_each(places, count)

    def pack_tuples(
        self,
        side: npt.ArrayLike,
        keys: Mapping[str, Array],
        timestamp: Array | None = None,
        value: Array | None = None,
    ) -> UInt64s:
        """Return the input words of tuples.

        Parameters
        ----------
        side : array of uint8, or Side
            Side of each tuple, or of all tuples.
        keys : mapping of str to array of int64 or uint64
            Values by key field; a missing field is sent as zero.
        timestamp : array of int64 or uint64, optional
            Timestamps; by default zero.
        value : array of int64, optional
            Values that a join aggregate stores beside the keys; by default zero.

        Returns
        -------
        array of uint64
            One word per row. Values that do not fit a field lose their upper bits.
        """
        fields = {f"key.{name}": np.asarray(column) for name, column in keys.items()}
        if timestamp is not None:
            fields["timestamp"] = np.asarray(timestamp)
        if value is not None:
            fields["value"] = np.asarray(value)
        sides = np.asarray(side)
        length = max((len(column) for column in fields.values()), default=sides.size)
        sides = np.broadcast_to(sides.reshape(-1), length)
        members = {side: np.flatnonzero(sides == side) for side in Side}
        places = self.places(members, length)
        words = np.empty((places.count, self.input.columns), dtype=np.uint64)
        blocks = {
            side: {name: _Array(column[at]) for name, column in fields.items()}
            for side, at in members.items()
        }
        self.scatter(words, places, blocks)
        return words

    def scatter(
        self,
        words: UInt64s,
        places: WordPlaces,
        fields: Mapping[Side, Mapping[str, Blocks]],
        begins: Mapping[Side, int] | None = None,
    ) -> None:
        """Write tuples into their words.

        Parameters
        ----------
        words : array of uint64
            Words to write; their previous contents do not matter.
        places : WordPlaces
            Places from :meth:`places`.
        fields : mapping of Side to mapping of str to Blocks
            For each side, values by the names of the word's fields, such as ``key.x`` and
            ``timestamp``; a missing field becomes zero.
        begins : mapping of Side to int, optional
            For each side, the row of its fields that belongs to its first tuple; by default 0.
        """
        if self._two:
            words[...] = 0
        for side, at in sorted(places.sides.items()):
            begin = 0 if begins is None else begins[side]
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
        kind, first = self.input["kind"].offset, self.input.fields.get("first")
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
        for index in range(self.input.columns):
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
            bits = self.input[name].bits
            if bits:
                blocks[name] = values.block(rows)
                if bits < 64:
                    blocks[name] &= mask(bits)
        return blocks

    def _columns(self, blocks: Mapping[str, UInt64s], prefix: str = "") -> dict[int, UInt64s]:
        """Return those columns of words that contain any of the given fields."""
        columns: dict[int, UInt64s] = {}
        for name, block in blocks.items():
            place = self.input[prefix + name]
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

    def tuple_counts(self, words: UInt64s) -> Int64s:
        """Return the number of tuples in each word, which is none in a control word."""
        kinds = unpack_field(words, self.input["kind"])
        counts = (kinds != self._kinds["CONTROL"]).astype(np.int64)
        if self._two:
            counts += kinds == self._kinds["BOTH"]
        return counts

    def unpack_tuples(
        self, words: UInt64s
    ) -> tuple[npt.NDArray[np.uint8], dict[str, Array], Array]:
        """Return sides, keys and timestamps of the tuples in words that hold only tuples.

        The ``value`` of a join aggregate is among the keys.
        """
        kinds = unpack_field(words, self.input["kind"])
        names = [f"key.{key.name}" for key in self.manifest.keys]
        names += {"value"} & self.input.fields.keys()
        columns = {name: unpack_field(words, self.input[name]) for name in [*names, "timestamp"]}
        sides = (kinds == self._kinds["S"]).astype(np.uint8)
        if self._two:
            shared = kinds == self._kinds["BOTH"]
            word = np.repeat(np.arange(len(words)), 1 + shared)
            first = unpack_field(words, self.input["first"])[word]
            is_second = np.zeros(len(word), np.bool_)
            is_second[1:] = word[1:] == word[:-1]
            sides = np.where(shared[word], first ^ is_second, sides[word]).astype(np.uint8)
            of_s = shared[word] & (sides == Side.S)
            columns = {name: column[word] for name, column in columns.items()}
            for name, column in columns.items():
                column[of_s] = unpack_field(words, self.input[SHARED + name])[word[of_s]]
        keys = {name.removeprefix("key."): columns[name] for name in names}
        return sides, keys, columns["timestamp"]


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
