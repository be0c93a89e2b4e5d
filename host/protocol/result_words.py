# SPDX-License-Identifier: Apache-2.0
"""Result words: words with one or two results."""

from dataclasses import dataclass

import numpy as np

from host.arrays import Array, Bools, Int64s, UInt64s
from host.protocol.bit_fields import shifted_rows, unpack_field
from host.protocol.input_words import BundleCodec
from host.protocol.manifest import SECOND, Manifest

__all__ = [
    "ResultCodec",
    "ResultWords",
]


#: Fields of a pair that say where the match is.
PLACE = ("probe", "lane", "row", "core")
#: Fields of a star or mark that only an accelerator has whose cores have gates.
FAILURE = ("failed", "failed_core")
#: Field of these that only an accelerator has whose memories have parity.
PARITY = "failed_parity"
#: Prefix of the fields of a value, which a join aggregate has in place of a pair.
VALUE = "value."


@dataclass(frozen=True)
class ResultWords:
    """Fields of results, as arrays of equal length.

    Attributes
    ----------
    kind : array of int64
        Kind, as in the manifest's ``result_kinds``.
    side : array of int64
        Side of the probe; zero for a mark.
    probe, lane, row, core : array of int64
        Place of the match; meaningful for pairs only. ``core`` is the core's number. Of a value,
        ``probe`` is the number of the tuple of R since the last star.
    overflow : array of int64
        Bit 0 for R's window, bit 1 for S's window; zero for pairs.
    disorder : array of bool
        Whether timestamps decreased; False for pairs.
    illegal : array of bool
        Whether an input word was illegal; False for pairs.
    inner : array of bool
        Whether a star ends a round, and not the results of its probes; False for all others.
    failed : array of bool
        Whether results of a failed core are missing since the last star or mark; False for pairs.
    failed_core : array of int64
        Number of that core; meaningful where ``failed`` is set.
    failed_parity : array of int64
        Why that core has failed: bit 0 for a flipped bit in its tuples of R, bit 1 for one in its
        tuples of S; zero if it stopped, or where ``failed`` is not set.
    values : dict of str to array
        What the matches of a tuple of R are reduced to, by the names in the manifest; meaningful
        for values only, and ``least`` and ``most`` not where ``count`` is zero. Empty of pairs.
    """

    kind: Int64s
    side: Int64s
    probe: Int64s
    lane: Int64s
    row: Int64s
    core: Int64s
    overflow: Int64s
    disorder: Bools
    illegal: Bools
    inner: Bools
    failed: Bools
    failed_core: Int64s
    failed_parity: Int64s
    values: dict[str, Array]

    def __len__(self) -> int:
        return len(self.kind)


class ResultCodec(BundleCodec):
    """Packs and unpacks the result words of one accelerator.

    A *result* is a row that holds one result. If a word holds only one result, the result is the
    word itself.

    Parameters
    ----------
    manifest : Manifest
        Manifest with the layout of the words.

    Attributes
    ----------
    pair, star, mark : int
        Kinds of results; that of a value, if the accelerator aggregates matches, is ``pair``.
    """

    manifest: Manifest

    def __init__(self, manifest: Manifest) -> None:
        super().__init__(manifest)
        self.result = manifest.result
        self._word = manifest.result_word
        self._two = manifest.tuples_per_word == 2
        kinds = manifest.result_kinds
        self._none = kinds.get("NONE", 0)
        datum = "PAIR" if "PAIR" in kinds else "VALUE"
        self.pair, self.star, self.mark = (kinds[name] for name in (datum, "STAR", "MARK"))
        values = (name for name in self.result.fields if name.startswith(VALUE))
        self._values = [name.removeprefix(VALUE) for name in values]
        storage = manifest.storage
        self._digits = (
            storage.gather_arity,
            storage.gather_digit_bits,
            storage.gather_levels,
        )

    def split_words(
        self, words: UInt64s, stamps: UInt64s | None = None
    ) -> tuple[UInt64s, UInt64s | None]:
        """Split result words into results, in order.

        Parameters
        ----------
        words : array of uint64
            Result words.
        stamps : array of uint64, optional
            Stamp of each word; each result gets the stamp of its word.
        """
        if not self._two:
            return words, stamps
        bits = self.result.bits
        is_shared = unpack_field(words, self._word[f"{SECOND}kind"]) != self._none
        shared = np.flatnonzero(is_shared)
        results = np.empty((len(words) + len(shared), self.result.columns), np.uint64)
        # The second results in shared words before a word shift the word's first result.
        first = np.arange(len(words))
        first[1:] += np.cumsum(is_shared[:-1])
        results[first] = shifted_rows(words, 0, bits)
        results[first[shared] + 1] = shifted_rows(words[shared], -bits, bits)
        if stamps is not None:
            stamps = np.repeat(stamps, 1 + is_shared)
        return results, stamps

    def unpack_results(self, results: UInt64s) -> ResultWords:
        """Return the fields of results."""
        # A chain has no places, few accelerators have rounds, and fewer tell of failures.
        absent = np.zeros(len(results), np.int64)
        fields: dict[str, Array] = dict.fromkeys(
            ("side", *PLACE, *FAILURE, PARITY, "inner"), absent
        )
        fields |= self.fields(results)
        values = {name: fields[VALUE + name] for name in self._values}
        stops = fields["kind"] != self.pair
        flags = {name: (fields[name] != 0) & stops for name in ("disorder", "illegal", "failed")}
        return ResultWords(
            **{name: fields[name] for name in ("kind", "side", "lane", "row")},
            **flags,
            probe=values.pop("probe", fields["probe"]),
            core=self.core_number(fields["core"]),
            overflow=fields["overflow"] * stops,
            inner=(fields["inner"] != 0) & (fields["kind"] == self.star),
            failed_core=self.core_number(fields["failed_core"]),
            failed_parity=fields[PARITY] * flags["failed"],
            values=values,
        )

    def core_number(self, digits: Int64s) -> Int64s:
        """Return the numbers of cores from the digits in results."""
        arity, bits, levels = self._digits
        if levels <= 1 or arity == 1 << bits:
            return digits
        number = np.zeros_like(digits)
        for level in range(levels):
            number += ((digits >> (level * bits)) & ((1 << bits) - 1)) * arity**level
        return number
