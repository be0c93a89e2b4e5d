# SPDX-License-Identifier: Apache-2.0
"""The codecs of each kind of accelerator."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from host.arrays import UInt64s
from host.errors import DeviceError
from host.protocol.bit_fields import pack_field, unpack_field
from host.protocol.input_words import BundleCodec, InputCodec
from host.protocol.manifest import AggregateManifest
from host.protocol.result_words import ResultCodec

__all__ = [
    "AggregateCodec",
    "WordCodec",
]

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


class AggregateCodec(BundleCodec):
    """Packs input words and unpacks results, by the layouts of the manifest.

    Parameters
    ----------
    manifest : AggregateManifest
    """

    manifest: AggregateManifest

    def __init__(self, manifest: AggregateManifest) -> None:
        super().__init__(manifest)
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
        words = np.zeros((len(times), self.input.columns), np.uint64)
        kind = self.manifest.input_kinds["TUPLE"]
        pack_field(words, self.input["kind"], np.full(len(times), kind))
        pack_field(words, self.input["tuple.timestamp"], times)
        for name in self._fields:
            pack_field(words, self.input[f"tuple.{name}"], columns[name])
        return words

    def check(self, results: UInt64s) -> None:
        """Raise for the first star or mark that tells of a fault.

        Raises
        ------
        DeviceError
            With the fault, its key, and what to do.
        """
        layout, value = self.result, self.manifest.result_kinds["VALUE"]
        stops = results[unpack_field(results, layout["kind"]) != value]
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


# The input and result words of one accelerator.


class WordCodec(InputCodec, ResultCodec):
    """Packs and unpacks the words of one accelerator that joins, or aggregates matches.

    Parameters
    ----------
    manifest : Manifest
        Manifest with the layout of the words.
    """
