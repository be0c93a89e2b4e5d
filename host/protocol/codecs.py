# SPDX-License-Identifier: Apache-2.0
"""The codecs of each kind of accelerator."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from host.arrays import Array, Bools, UInt64s
from host.errors import DeviceError
from host.protocol.bit_fields import pack_field, require_fits, unpack_field
from host.protocol.input_words import InputCodec
from host.protocol.manifest import AggregateManifest, JoinAggregateManifest, Manifest
from host.protocol.result_words import ResultCodec

__all__ = [
    "AggregateCodec",
    "MatchCodec",
    "MatchResults",
    "REDUCTIONS",
    "WindowResults",
    "WordCodec",
    "codec_of",
]

# Words of a join aggregate: its tuples have values, its results are reductions of matches.

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

    kind: Array
    probe: Array
    values: dict[str, Array]
    overflow: Array
    disorder: Bools
    illegal: Bools


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
    ) -> tuple[npt.NDArray[np.uint8], dict[str, Array], Array]:
        """Return sides, keys and timestamps of tuples; the ``value`` is among the keys."""
        sides, keys, timestamp = super().unpack_tuples(words)
        return sides, {**keys, "value": unpack_field(words, self.input["value"])}, timestamp

    def split_words(
        self, words: UInt64s, stamps: UInt64s | None = None
    ) -> tuple[UInt64s, UInt64s | None]:
        """Return the results in words, and their stamps: each result is a word."""
        return words, stamps

    def marks(self, words: UInt64s) -> Bools:
        """Return which result words are marks."""
        marks: Bools = unpack_field(words, self._result["kind"]) == self.mark
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


# Words of an aggregate accelerator, as arrays of 64-bit numbers.

#: Faults that a star or mark tells of, as the manifest names their fields, and what each means.
_FAULTS = {
    "capacity": "key {key} is not below the capacity of {keys} keys; generate the accelerator with "
    "a larger --key-capacity, or number the keys densely",
    "range": "a reduction of key {key} needed more bits than it has in a pane or window; generate "
    "the accelerator with a larger --pane-bits, or the operator with wider reductions",
    "disorder": "a tuple was below an earlier watermark, in a pane that had ended; sort the tuples "
    "by time",
    "illegal": "a control word had an operation that the accelerator does not execute; send only "
    "those of its manifest",
}


@dataclass(frozen=True)
class WindowResults:
    """Unpacked results of an aggregate, one entry per result word.

    Attributes
    ----------
    kind : array of int64
        Value of ``result_kinds`` of the manifest.
    boundary : array of int64
        Right boundary of the window; 0 for a mark.
    key : array of int64
        Number of the key; without meaning for stars and marks.
    window : dict of str to array
        The reductions by name; without meaning for stars and marks.
    """

    kind: Array
    boundary: Array
    key: Array
    window: dict[str, Array]


class AggregateCodec:
    """Packs input words and unpacks results, by the layouts of the manifest.

    Parameters
    ----------
    manifest : AggregateManifest
    """

    def __init__(self, manifest: AggregateManifest) -> None:
        self.manifest = manifest
        self._fields = [field["name"] for field in manifest.operator["fields"]]

    def pack_tuples(self, times: npt.ArrayLike, columns: Mapping[str, npt.ArrayLike]) -> UInt64s:
        """Return the words of tuples.

        Parameters
        ----------
        times : array of int
            Timestamps, which fit the accelerator's.
        columns : mapping of str to array of int
            The operator's fields; their values fit the fields.
        """
        times = np.asarray(times)
        words = self._words(len(times), "TUPLE")
        layout = self.manifest.input_word
        pack_field(words, layout["tuple.timestamp"], times)
        for name in self._fields:
            pack_field(words, layout[f"tuple.{name}"], columns[name])
        return words

    def pack_control(self, op: str, value: int = 0) -> UInt64s:
        """Return one control word, an array of one row.

        Raises
        ------
        UsageError
            If the operand has more bits than the word has for it.
        """
        words = self._words(1, "CONTROL")
        layout = self.manifest.input_word
        pack_field(words, layout["control.op"], [self.manifest.operations[op]])
        place = layout["control.value"]
        pack_field(words, place, [require_fits(place, int(value), f"{op}: control.value")])
        return words

    def unpack(self, results: UInt64s) -> WindowResults:
        """Return the fields of result words."""
        layout = self.manifest.result_word
        names = [rule["name"] for rule in self.manifest.operator["reductions"]]
        kind, boundary, key = (
            unpack_field(results, layout[name]) for name in ("kind", "boundary", "key")
        )
        window = {name: unpack_field(results, layout[f"window.{name}"]) for name in names}
        return WindowResults(kind, boundary, key, window)

    def marks(self, results: UInt64s) -> Bools:
        """Return which result words are marks."""
        kind = unpack_field(results, self.manifest.result_word["kind"])
        marks: Bools = kind == self.manifest.result_kinds["MARK"]
        return marks

    def check(self, results: UInt64s) -> None:
        """Raise for the first star or mark that tells of a fault.

        Raises
        ------
        DeviceError
            With the fault, its key, and what to do.
        """
        layout, kinds = self.manifest.result_word, self.manifest.result_kinds
        stops = results[unpack_field(results, layout["kind"]) != kinds["VALUE"]]
        for name, text in _FAULTS.items():
            told = unpack_field(stops, layout[f"faults.{name}"]) != 0
            if told.any():
                first = stops[told][:1]
                key = int(unpack_field(first, layout["faults.key"])[0])
                boundary = int(unpack_field(first, layout["boundary"])[0])
                place = f" by boundary {boundary}" if boundary else ""  # none for a mark
                raise DeviceError(
                    f"The accelerator reports a fault ({name}){place}: "
                    f"{text.format(key=key, keys=self.manifest.keys)}."
                )

    def _words(self, count: int, kind: str) -> UInt64s:
        layout = self.manifest.input_word
        words = np.zeros((count, layout.columns), np.uint64)
        pack_field(words, layout["kind"], np.full(count, self.manifest.input_kinds[kind]))
        return words


# The input and result words of one accelerator.


class WordCodec(InputCodec, ResultCodec):
    """Packs and unpacks the words of one accelerator.

    Parameters
    ----------
    manifest : Manifest
        Manifest with the layout of the words.
    """

    def __init__(self, manifest: Manifest) -> None:
        InputCodec.__init__(self, manifest)
        ResultCodec.__init__(self, manifest)


def codec_of(manifest: Manifest) -> WordCodec | MatchCodec:
    """Return the codec of an accelerator that joins, or aggregates matches."""
    if isinstance(manifest, JoinAggregateManifest):
        return MatchCodec(manifest)
    return WordCodec(manifest)
