# SPDX-License-Identifier: Apache-2.0
"""Words of a join aggregate: its tuples have values, its results are reductions of matches."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from host.manifest import JoinAggregateManifest
from host.reference.exact import UInt64s
from host.words.bit_fields import pack_field, unpack_field
from host.words.input_codec import InputCodec

__all__ = ["REDUCTIONS", "MatchCodec", "MatchResults"]

#: What the matches of a tuple of R are reduced to, by the names in the manifest.
REDUCTIONS = ("count", "total", "least", "most")


@dataclass(frozen=True)
class MatchResults:
    """Unpacked results of a join aggregate, one entry per result word.

    Attributes
    ----------
    kind : array of int64
        Value of ``result_kinds`` of the manifest.
    probe : array of int64
        Number of the tuple of R since the last star; only of a value.
    values : dict of str to array
        The reductions by name; only of a value. Without a match, ``least`` and ``most`` have no
        meaning.
    overflow : array of int64
        Bit 1 is set if the window of S has outgrown the cores; only of a star or mark.
    disorder, illegal : array of bool
        Whether timestamps decreased, and whether an input word was illegal; likewise.
    """

    kind: npt.NDArray[Any]
    probe: npt.NDArray[Any]
    values: dict[str, npt.NDArray[Any]]
    overflow: npt.NDArray[Any]
    disorder: npt.NDArray[np.bool_]
    illegal: npt.NDArray[np.bool_]


class MatchCodec(InputCodec):
    """Packs and unpacks the words of a join aggregate.

    Parameters
    ----------
    manifest : JoinAggregateManifest
        Manifest with the layout of the words.

    Attributes
    ----------
    value, star, mark : int
        Kinds of results.
    """

    manifest: JoinAggregateManifest

    def __init__(self, manifest: JoinAggregateManifest) -> None:
        super().__init__(manifest)
        self.value, self.star, self.mark = (
            manifest.result_kinds[name] for name in ("VALUE", "STAR", "MARK")
        )
        self._result = manifest.result_word

    def unpack_tuples(
        self, words: UInt64s
    ) -> tuple[npt.NDArray[np.uint8], dict[str, npt.NDArray[Any]], npt.NDArray[Any]]:
        """Return sides, keys and timestamps of tuples; the ``value`` is among the keys."""
        sides, keys, timestamp = super().unpack_tuples(words)
        return sides, {**keys, "value": unpack_field(words, self.input["value"])}, timestamp

    def join_results(self, results: UInt64s) -> UInt64s:
        """Return words that hold results: each result is a word."""
        return results

    def split_words(
        self, words: UInt64s, stamps: UInt64s | None = None
    ) -> tuple[UInt64s, UInt64s | None]:
        """Return the results in words, and their stamps: each result is a word."""
        return words, stamps

    def marks(self, words: UInt64s) -> npt.NDArray[np.bool_]:
        """Return which result words are marks."""
        marks: npt.NDArray[np.bool_] = unpack_field(words, self._result["kind"]) == self.mark
        return marks

    def unpack_results(self, words: UInt64s) -> MatchResults:
        """Return the fields of result words."""
        names = ("kind", "value.probe", "overflow", "disorder", "illegal")
        kind, probe, overflow, disorder, illegal = (
            unpack_field(words, self._result[name]) for name in names
        )
        stops = kind != self.value
        return MatchResults(
            kind=kind,
            probe=probe,
            values={
                name: unpack_field(words, self._result[f"value.{name}"]) for name in REDUCTIONS
            },
            overflow=overflow * stops,
            disorder=(disorder != 0) & stops,
            illegal=(illegal != 0) & stops,
        )

    def pack_values(self, probe: npt.ArrayLike, values: Mapping[str, npt.ArrayLike]) -> UInt64s:
        """Return values as result words, one per row."""
        probe = np.asarray(probe)
        words = np.zeros((len(probe), self._result.columns), np.uint64)
        pack_field(words, self._result["kind"], np.full(len(probe), self.value))
        pack_field(words, self._result["value.probe"], probe)
        for name in REDUCTIONS:
            pack_field(words, self._result[f"value.{name}"], values[name])
        return words

    def pack_punctuation(
        self, kind: int, overflow: npt.ArrayLike, *, disorder: bool, illegal: bool
    ) -> UInt64s:
        """Return stars or marks (``kind`` is ``star`` or ``mark``) as result words."""
        overflow = np.atleast_1d(np.asarray(overflow))
        words = np.zeros((len(overflow), self._result.columns), np.uint64)
        pack_field(words, self._result["overflow"], overflow)
        for name, value in {"kind": kind, "disorder": disorder, "illegal": illegal}.items():
            pack_field(words, self._result[name], np.full(len(words), value))
        return words
