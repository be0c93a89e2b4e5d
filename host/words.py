# SPDX-License-Identifier: Apache-2.0
"""Input and result words as arrays of 64-bit numbers, one word a row, little end first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from host.exact import UInt64s
from host.manifest import Manifest, Word, WordField

__all__ = ["Blocks", "ResultWords", "WordCodec", "pack_field", "unpack_field"]

Int64s = npt.NDArray[np.int64]

#: Rows packed at once, so that their words stay in the processor's cache.
BLOCK = 1 << 11


#: The same for one side of several, whose columns are computed and scattered.
SCATTERED = 1 << 13


class Blocks(Protocol):
    """A column that is computed some rows at a time."""

    def block(self, rows: slice) -> UInt64s:
        """Return some rows, modulo 2**64, in an array of their own."""


def _mask(bits: int) -> np.uint64:
    return np.uint64((1 << bits) - 1)


def pack_field(words: UInt64s, place: WordField, values: npt.ArrayLike) -> None:
    """Put ``values`` into one field of all ``words``, whose field must be zero before.

    A value that does not fit loses its upper bits and leaves its neighbours alone.
    """
    if place.bits == 0:
        return
    if place.bits > 64:
        raise ValueError(f"A field of {place.bits} bits does not come from a column")
    array = np.asarray(values)
    unsigned = array.astype(np.uint64 if array.dtype.kind == "u" else np.int64, copy=False)
    unsigned = unsigned.view(np.uint64)
    if place.bits < 64:
        unsigned = unsigned & _mask(place.bits)
    column, shift = divmod(place.offset, 64)
    words[:, column] |= unsigned << np.uint64(shift) if shift else unsigned
    if shift + place.bits > 64:
        words[:, column + 1] |= unsigned >> np.uint64(64 - shift)


def unpack_field(words: UInt64s, place: WordField) -> npt.NDArray[Any]:
    """Return one field of all ``words``: int64, or uint64 for an unsigned field of 64 bits."""
    if place.bits == 0:
        return np.zeros(len(words), dtype=np.int64)
    if place.bits > 64:
        raise ValueError(f"A field of {place.bits} bits does not fit a column")
    column, shift = divmod(place.offset, 64)
    values = words[:, column] >> np.uint64(shift)
    if shift + place.bits > 64:
        values |= words[:, column + 1] << np.uint64(64 - shift)
    if not place.signed:
        values = values & _mask(place.bits) if place.bits < 64 else values
        return values if place.bits == 64 else values.view(np.int64)
    spare = 64 - place.bits
    return (values << np.uint64(spare)).view(np.int64) >> np.int64(spare)


@dataclass(frozen=True)
class ResultWords:
    """Fields of result words, as arrays of equal length.

    Attributes
    ----------
    kind : array of int64
        As in the manifest's ``result_kinds``.
    side : array of int64
        Side of the probe; zero for a mark.
    probe, lane, row, core : array of int64
        Where the match is; meaningful for pairs only. ``core`` is the core's number.
    overflow : array of int64
        Bit 0: R's window, bit 1: S's; zero for pairs.
    disorder : array of bool
        Whether time went backwards; false for pairs.
    illegal : array of bool
        Whether an input word was illegal; false for pairs.
    """

    kind: Int64s
    side: Int64s
    probe: Int64s
    lane: Int64s
    row: Int64s
    core: Int64s
    overflow: Int64s
    disorder: npt.NDArray[np.bool_]
    illegal: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.kind)


class WordCodec:
    """Packs and unpacks the words of one accelerator.

    Parameters
    ----------
    manifest : Manifest
        Where the fields are.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.input: Word = manifest.input_word
        self.result: Word = manifest.result_word
        kinds = manifest.input_kinds
        self._kinds = np.array([kinds["R"], kinds["S"]], dtype=np.uint8)
        storage = manifest.storage
        self._digits = (
            storage.gather_arity,
            storage.gather_digit_bits,
            storage.gather_levels,
        )
        self.pair, self.star, self.mark = (
            manifest.result_kinds[name] for name in ("PAIR", "STAR", "MARK")
        )

    def pack_tuples(
        self,
        side: npt.ArrayLike,
        keys: Mapping[str, npt.NDArray[Any]],
        timestamp: npt.NDArray[Any] | None = None,
    ) -> UInt64s:
        """Return the input words of tuples.

        Parameters
        ----------
        side : array of uint8, or Side
            Side of each tuple, or of all.
        keys : mapping of str to array of int64 or uint64
            By field; a field that is absent is sent as zero.
        timestamp : array of int64 or uint64, optional
            Zero when absent.

        Returns
        -------
        array of uint64
            One row a tuple. Values that do not fit a field lose their upper bits.
        """
        fields = {f"key.{name}": np.asarray(column) for name, column in keys.items()}
        if timestamp is not None:
            fields["timestamp"] = np.asarray(timestamp)
        sides = np.asarray(side)
        length = max((len(column) for column in fields.values()), default=sides.size)
        fields["kind"] = np.broadcast_to(self._kinds[sides.astype(np.intp)].reshape(-1), length)
        words = np.zeros((length, self.input.columns), dtype=np.uint64)
        for begin in range(0, length, BLOCK):
            block = slice(begin, begin + BLOCK)
            for name, column in fields.items():
                pack_field(words[block], self.input[name], column[block])
        return words

    def scatter(
        self, words: UInt64s, places: Int64s, side: int, fields: Mapping[str, Blocks], begin: int
    ) -> None:
        """Write tuples of one side into their words, every column of a word once.

        Parameters
        ----------
        words : array of uint64
            Words of both sides; what they hold does not matter.
        places : array of int64
            Which of them are written, ascending.
        side : int
            Side of the tuples.
        fields : mapping of str to Blocks
            By the word's fields, as ``key.x`` and ``timestamp``; an absent one becomes zero.
        begin : int
            Row of ``fields`` that belongs to the first place.
        """
        kind = int(self._kinds[side]) << self.input["kind"].offset
        for start in range(0, len(places), SCATTERED):
            some = places[start : start + SCATTERED]
            rows = slice(begin + start, begin + start + len(some))
            columns = self._columns(fields, rows)
            adjacent = int(some[-1]) - int(some[0]) + 1 == len(some)
            for index in range(self.input.columns):
                constant = np.uint64(kind >> (64 * index) & 0xFFFF_FFFF_FFFF_FFFF)
                column = columns.get(index)
                if column is not None and constant:
                    column |= constant
                value = constant if column is None else column
                if adjacent:
                    words[int(some[0]) : int(some[-1]) + 1, index] = value
                else:
                    words[some, index] = value

    def _columns(self, fields: Mapping[str, Blocks], rows: slice) -> dict[int, UInt64s]:
        """Return the columns of words that have one of ``fields``, without their kind."""
        columns: dict[int, UInt64s] = {}
        for name, values in fields.items():
            place = self.input[name]
            if not place.bits:
                continue
            index, shift = divmod(place.offset, 64)
            block = values.block(rows)
            if place.bits < 64:
                block &= _mask(place.bits)
            parts = [(index, block << np.uint64(shift) if shift else block)]
            if shift + place.bits > 64:
                parts.append((index + 1, block >> np.uint64(64 - shift)))
            for at, part in parts:
                if at in columns:
                    columns[at] |= part
                else:
                    columns[at] = part
        return columns

    def pack_control(self, operation: str, index: int = 0, value: int = 0) -> UInt64s:
        """Return the input word, one row, of an operation that the manifest names."""
        operations = self.manifest.operations
        number = 0
        for name, operand in [
            ("kind", self.manifest.input_kinds["CONTROL"]),
            ("control.op", operations[operation]),
            ("control.index", index),
            ("control.value", value),
        ]:
            place = self.input[name]
            number |= (int(operand) & ((1 << place.bits) - 1)) << place.offset
        return _row(number, self.input.columns)

    def unpack_control(self, word: UInt64s) -> tuple[str, int, int]:
        """Inverse of :meth:`pack_control`, for one legal row."""
        number = int.from_bytes(word.astype("<u8").tobytes(), "little")
        op, index, value = (
            _extract(number, self.input[name])
            for name in ("control.op", "control.index", "control.value")
        )
        names = {code: name for name, code in self.manifest.operations.items()}
        return names[op], index, value

    def legal(self, words: UInt64s) -> npt.NDArray[np.bool_]:
        """Tell which of these input words mean something; the accelerator drops all others."""
        kinds = unpack_field(words, self.input["kind"])
        is_control = kinds == self.manifest.input_kinds["CONTROL"]
        legal: npt.NDArray[np.bool_] = np.isin(kinds, self._kinds)
        controls = words[is_control]
        if len(controls):
            op, index = (
                unpack_field(controls, self.input[name]) for name in ("control.op", "control.index")
            )
            indices = self.manifest.indices
            executed = [
                (op == code) & (index < indices[name])
                for name, code in self.manifest.operations.items()
            ]
            legal[is_control] = np.logical_or.reduce(executed)
        return legal

    def marks(self, words: UInt64s) -> npt.NDArray[np.bool_]:
        """Tell which of these result words are marks."""
        kinds = unpack_field(words, self.result.fields["kind"])
        marks: npt.NDArray[np.bool_] = kinds == self.mark
        return marks

    def unpack_results(self, words: UInt64s) -> ResultWords:
        """Take result words apart."""
        fields = {name: unpack_field(words, place) for name, place in self.result.fields.items()}
        punctuation = fields["kind"] != self.pair
        return ResultWords(
            kind=fields["kind"],
            side=fields["side"],
            probe=fields["probe"],
            lane=fields["lane"],
            row=fields["row"],
            core=self.core_number(fields["core"]),
            overflow=fields["overflow"] * punctuation,
            disorder=(fields["disorder"] != 0) & punctuation,
            illegal=(fields["illegal"] != 0) & punctuation,
        )

    def pack_pairs(
        self, side: npt.ArrayLike, probe: Int64s, core: Int64s, row: Int64s, lane: Int64s
    ) -> UInt64s:
        """Return the result words of pairs."""
        words = np.zeros((len(probe), self.result.columns), dtype=np.uint64)
        pack_field(words, self.result["kind"], self.pair)
        values = {"side": side, "probe": probe, "core": self._core_digits(core)}
        for name, column in {**values, "row": row, "lane": lane}.items():
            pack_field(words, self.result[name], column)
        return words

    def pack_punctuation(
        self,
        kind: npt.ArrayLike,
        side: npt.ArrayLike,
        overflow: npt.ArrayLike,
        disorder: npt.ArrayLike,
        illegal: npt.ArrayLike = False,
    ) -> UInt64s:
        """Return the result words of stars and marks (``kind`` is ``star`` or ``mark``)."""
        names = ("kind", "side", "overflow", "disorder", "illegal")
        values = (kind, side, overflow, disorder, illegal)
        columns = np.broadcast_arrays(*(np.asarray(value) for value in values))
        words = np.zeros((columns[0].size, self.result.columns), dtype=np.uint64)
        for name, column in zip(names, columns, strict=True):
            pack_field(words, self.result[name], column.reshape(-1))
        return words

    def core_number(self, digits: Int64s) -> Int64s:
        """Return the number of each core, of which a result word has the digits."""
        arity, bits, levels = self._digits
        if levels <= 1 or arity == 1 << bits:
            return digits
        number = np.zeros_like(digits)
        for level in range(levels):
            number += ((digits >> (level * bits)) & ((1 << bits) - 1)) * arity**level
        return number

    def _core_digits(self, number: Int64s) -> Int64s:
        arity, bits, levels = self._digits
        if levels <= 1 or arity == 1 << bits:
            return number
        digits = np.zeros_like(number)
        for level in range(levels):
            digits |= (number // arity**level % arity) << (level * bits)
        return digits


def _row(number: int, columns: int) -> UInt64s:
    return np.frombuffer(number.to_bytes(8 * columns, "little"), dtype="<u8").reshape(1, -1).copy()


def _extract(number: int, place: WordField) -> int:
    value = (number >> place.offset) & ((1 << place.bits) - 1)
    if place.signed and place.bits and value >> (place.bits - 1):
        value -= 1 << place.bits
    return value
