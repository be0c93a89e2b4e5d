# SPDX-License-Identifier: Apache-2.0
"""The device's end of the words: input words are read, results are written.

The host's end is in ``host.protocol``, whose codecs these ones extend.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from host.protocol.bit_fields import pack_field, shifted_rows, unpack_field
from host.protocol.codecs import WordCodec
from host.protocol.input_words import InputCodec
from host.protocol.manifest import SECOND, JoinAggregateManifest, Manifest, WordField
from host.protocol.pairing import seconds
from host.protocol.result_words import FAILURE
from host.protocol.spread import SEED_BITS
from host.reference.arrivals import UInt64s

__all__ = [
    "JoinWords",
    "MatchWords",
    "REDUCTIONS",
    "ReceivedWords",
    "field_hash",
    "words_of",
]

Int64s = npt.NDArray[np.int64]

#: What the matches of a tuple of R are reduced to, by the names in the manifest.
REDUCTIONS = ("count", "total", "least", "most")


class ReceivedWords(InputCodec):
    """Input words as a device reads them."""

    def unpack_control(self, word: UInt64s) -> tuple[str, int, int]:
        """Return operation, index and value of a legal control word, which is one row."""
        number = int.from_bytes(word.astype("<u8").tobytes(), "little")
        op, index, value = (
            _extract(number, self.input[name])
            for name in ("control.op", "control.index", "control.value")
        )
        names = {code: name for name, code in self.manifest.operations.items()}
        return names[op], index, value

    def legal(self, words: UInt64s) -> npt.NDArray[np.bool_]:
        """Return which input words are legal; the accelerator drops all others."""
        kinds = unpack_field(words, self.input["kind"])
        tuples = [kind for name, kind in self._kinds.items() if name != "CONTROL"]
        is_control = kinds == self.manifest.input_kinds["CONTROL"]
        legal: npt.NDArray[np.bool_] = np.isin(kinds, tuples)
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


def _extract(number: int, place: WordField) -> int:
    value = (number >> place.offset) & ((1 << place.bits) - 1)
    if place.signed and place.bits and value >> (place.bits - 1):
        value -= 1 << place.bits
    return value


class JoinWords(ReceivedWords, WordCodec):
    """Words of a join as a device reads and writes them."""

    def join_results(self, results: UInt64s) -> UInt64s:
        """Return words that hold results; neighbouring results of different sides share a word.

        The hardware may combine results in other ways; only the sequence of results is determined.
        """
        if not self._two:
            return results
        if not len(results):
            return np.zeros((0, self._word.columns), np.uint64)
        kinds, sides = (unpack_field(results, self.result[name]) for name in ("kind", "side"))
        second = seconds(sides.astype(np.uint8), kinds == self.mark)
        words = shifted_rows(results[~second], 0, self._word.bits)
        is_shared = np.append(second[1:], False)[~second]
        moved = shifted_rows(results[second], self.result.bits, self._word.bits)
        words[is_shared] |= moved
        empty = np.zeros((int(np.count_nonzero(~is_shared)), words.shape[1]), np.uint64)
        pack_field(empty, self._word[f"{SECOND}kind"], np.full(len(empty), self._none))
        words[~is_shared] |= empty
        return words

    def pack_pairs(
        self, side: npt.ArrayLike, probe: Int64s, core: Int64s, row: Int64s, lane: Int64s
    ) -> UInt64s:
        """Return pairs as results."""
        results = np.zeros((len(probe), self.result.columns), dtype=np.uint64)
        pack_field(results, self.result["kind"], self.pair)
        values = {"side": side, "probe": probe, "core": self._core_digits(core)}
        for name, column in {**values, "row": row, "lane": lane}.items():
            pack_field(results, self.result[name], column)
        return results

    def pack_punctuation(
        self,
        kind: npt.ArrayLike,
        side: npt.ArrayLike,
        overflow: npt.ArrayLike,
        disorder: npt.ArrayLike,
        illegal: npt.ArrayLike = False,
        failed: int | None = None,
    ) -> UInt64s:
        """Return stars or marks as results (``kind`` is ``star`` or ``mark``).

        ``failed`` is the number of a core whose results are missing, if there is one.
        """
        names = ["kind", "side", "overflow", "disorder", "illegal"]
        values = [kind, side, overflow, disorder, illegal]
        if failed is not None:
            names += FAILURE
            values += [True, self._core_digits(np.array([failed]))]
        columns = np.broadcast_arrays(*(np.asarray(value) for value in values))
        results = np.zeros((columns[0].size, self.result.columns), dtype=np.uint64)
        for name, column in zip(names, columns, strict=True):
            pack_field(results, self.result[name], column.reshape(-1))
        return results

    def pack_inner_stars(self, side: Int64s) -> UInt64s:
        """Return stars of rounds as results; only for an accelerator with rounds."""
        results = self.pack_punctuation(self.star, side, 0, False)
        pack_field(results, self.result["inner"], np.ones(len(side), np.int64))
        return results

    def _core_digits(self, number: Int64s) -> Int64s:
        arity, bits, levels = self._digits
        if levels <= 1 or arity == 1 << bits:
            return number
        digits = np.zeros_like(number)
        for level in range(levels):
            digits |= (number // arity**level % arity) << (level * bits)
        return digits


class MatchWords(ReceivedWords, WordCodec):
    """Words of a join aggregate as a device reads and writes them."""

    def join_results(self, results: UInt64s) -> UInt64s:
        """Return words that hold results: each result is a word."""
        return results

    def pack_values(self, probe: npt.ArrayLike, values: Mapping[str, npt.ArrayLike]) -> UInt64s:
        """Return values as result words, one per row."""
        probe = np.asarray(probe)
        words = np.zeros((len(probe), self.result.columns), np.uint64)
        pack_field(words, self.result["kind"], np.full(len(probe), self.pair))
        pack_field(words, self.result["value.probe"], probe)
        for name in REDUCTIONS:
            pack_field(words, self.result[f"value.{name}"], values[name])
        return words

    def pack_punctuation(
        self, kind: int, overflow: npt.ArrayLike, disorder: bool, illegal: bool
    ) -> UInt64s:
        """Return stars or marks (``kind`` is ``star`` or ``mark``) as result words."""
        overflow = np.atleast_1d(np.asarray(overflow))
        words = np.zeros((len(overflow), self.result.columns), np.uint64)
        pack_field(words, self.result["overflow"], overflow)
        for name, value in {"kind": kind, "disorder": disorder, "illegal": illegal}.items():
            pack_field(words, self.result[name], np.full(len(words), value))
        return words


def words_of(manifest: Manifest) -> JoinWords | MatchWords:
    """Return the words of an accelerator: those of a join, or of a join aggregate."""
    if isinstance(manifest, JoinAggregateManifest):
        return MatchWords(manifest)
    return JoinWords(manifest)


# The hash of a key field, as an index engine's ingress computes it.


def field_hash(
    values: UInt64s, *, seed: int, bits: int, bucket_bits: int, first: bool = True
) -> UInt64s:
    """Return the hashes of one key field; the hash of a key is the exclusive or over its fields.

    Parameters
    ----------
    values : array of uint64
        Values below ``2 ** bits``. For a band, they are offset so that the smallest value is zero.
    seed : int
        Seed of the field.
    bits : int
        Width of the field in bits.
    bucket_bits : int
        Width of the hash in bits.
    first : bool
        Whether this is the first field, whose lowest bits are not multiplied.
    """
    plain = min(bucket_bits, bits) if first else 0
    low = values & np.uint64((1 << plain) - 1)
    if plain == bits:
        return low
    width = min(bits - plain + bucket_bits, 2 * SEED_BITS)
    multiplier = (seed << SEED_BITS | seed) >> (2 * SEED_BITS - width)
    product = (values >> np.uint64(plain)) * np.uint64(multiplier)
    upper = (product & np.uint64((1 << width) - 1)) >> np.uint64(width - bucket_bits)
    return (low + upper) & np.uint64((1 << bucket_bits) - 1)
