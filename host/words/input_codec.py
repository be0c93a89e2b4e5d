# SPDX-License-Identifier: Apache-2.0
"""Input words: tuples, one a word or two, and control words."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from host.exact import UInt64s
from host.manifest import Manifest, Word, WordField
from host.side import Side
from host.words.bit_fields import unpack_field
from host.words.pairing import WordPlaces, joined, one_each
from host.words.tuple_writer import SHARED, Blocks, TupleWriter

__all__ = ["InputCodec"]

Int64s = npt.NDArray[np.int64]


class _Array:
    """An array of integers as :class:`Blocks`."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self._values = values

    def block(self, rows: slice) -> UInt64s:
        return self._values[rows].astype(np.uint64)


class InputCodec:
    """Packs and unpacks the input words of one accelerator.

    Parameters
    ----------
    manifest : Manifest
        Where the fields are.

    Attributes
    ----------
    input : Word
        Layout of an input word.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.input: Word = manifest.input_word
        self._kinds = manifest.input_kinds
        self._tuples = [kind for name, kind in self._kinds.items() if name != "CONTROL"]
        self._two = manifest.tuples_per_word == 2
        self._writer = TupleWriter(manifest)

    def places(self, places: Mapping[Side, Int64s], count: int) -> WordPlaces:
        """Say in which words ``count`` tuples go.

        Parameters
        ----------
        places : mapping of Side to array of int64
            The place of each tuple of a side among all of them, ascending.
        count : int
            How many there are.
        """
        return joined(places, count) if self._two else one_each(places, count)

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
            One row a word. Values that do not fit a field lose their upper bits.
        """
        fields = {f"key.{name}": np.asarray(column) for name, column in keys.items()}
        if timestamp is not None:
            fields["timestamp"] = np.asarray(timestamp)
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
            What they hold does not matter.
        places : WordPlaces
            Of :meth:`places`.
        fields : mapping of Side to mapping of str to Blocks
            By side and the word's fields, as ``key.x`` and ``timestamp``; an absent one becomes
            zero.
        begins : mapping of Side to int, optional
            Row of a side's fields that belongs to its first tuple; by default the first one.
        """
        self._writer.write(words, places, fields, begins or dict.fromkeys(Side, 0))

    def tuple_counts(self, words: UInt64s) -> Int64s:
        """Return how many tuples each of these words has; one of a control word."""
        counts = np.ones(len(words), np.int64)
        if self._two:
            counts += unpack_field(words, self.input["kind"]) == self._kinds["BOTH"]
        return counts

    def unpack_tuples(
        self, words: UInt64s
    ) -> tuple[npt.NDArray[np.uint8], dict[str, npt.NDArray[Any]], npt.NDArray[Any]]:
        """Return sides, keys and timestamps of the tuples in words that have no others."""
        kinds = unpack_field(words, self.input["kind"])
        names = [f"key.{key.name}" for key in self.manifest.keys]
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
        legal: npt.NDArray[np.bool_] = np.isin(kinds, self._tuples)
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


def _row(number: int, columns: int) -> UInt64s:
    return np.frombuffer(number.to_bytes(8 * columns, "little"), dtype="<u8").reshape(1, -1).copy()


def _extract(number: int, place: WordField) -> int:
    value = (number >> place.offset) & ((1 << place.bits) - 1)
    if place.signed and place.bits and value >> (place.bits - 1):
        value -= 1 << place.bits
    return value
