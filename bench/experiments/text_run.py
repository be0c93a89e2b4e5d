# SPDX-License-Identifier: Apache-2.0
"""Aggregate texts by words or pairs of words on a simulated accelerator, and check every value."""

from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hdl.aggregate.aggregate_parameters import AggregateParameters
from hdl.windowed.description import OperatorDescription
from host.devices import Stamps
from host.devices.simulated import SimulatedAggregate
from host.errors import DeviceError
from host.operators.operate import OperatorQuery, operate_tables
from host.protocol.codecs import AggregateCodec

from .text_operators import DISTANCES, LONGEST, counting, operator_of
from .texts import SOURCES

__all__ = ["KEY_BITS", "TextPoint", "measure_texts", "text_parameters"]

#: Bits of a key: a word, or both words of a pair.
KEY_BITS = 14
#: Most cycles of a run for each key, beyond which something hangs.
MOST_CYCLES = 64


@dataclass(frozen=True)
class TextPoint:
    """What is measured.

    Parameters
    ----------
    kind : str
        One of :data:`~bench.experiments.text_operators.KINDS`.
    cores : int
        Cores of the accelerator.
    source : str
        One of :data:`~bench.experiments.texts.SOURCES`.
    most : int
        Most words of a text.
    pane_texts, panes : int
        Texts of a pane, and number of panes.
    """

    kind: str
    cores: int = 1
    source: str = "english"
    most: int = 16
    pane_texts: int = 2500
    panes: int = 8

    @property
    def accelerator(self):
        """Name of the accelerator, which depends on neither the texts nor the panes."""
        return f"{self.kind.replace(' ', '-').lower()}-{self.most}-{self.cores}"

    @property
    def bits(self):
        """Width of the number of a word."""
        return KEY_BITS if DISTANCES.get(self.kind) is None else KEY_BITS // 2

    @property
    def operator(self):
        """What the accelerator does."""
        return operator_of(self.kind, most=self.most, bits=self.bits)


def text_parameters(point):
    """Return the parameters of the accelerator of a point."""
    return AggregateParameters(
        operator=OperatorDescription.from_dict(point.operator.to_dict()),
        cores=point.cores,
        timestamp_bits=16,
    )


def measure_texts(manifest, point):
    """Send texts as fast as they are accepted, and check the value of every window and key.

    Parameters
    ----------
    manifest : AggregateManifest
        Of a bundle whose library is built.
    point : TextPoint
        What to measure.

    Returns
    -------
    dict
        ``cycles`` from the first text of the second pane to the last one; the ``texts`` from there
        on, their ``words``, and their ``keys``, of which each text has a set; ``results`` of all
        windows.
    """
    operator = point.operator
    texts = SOURCES[point.source](
        point.pane_texts * point.panes, vocabulary=1 << point.bits, most=point.most
    )
    times = np.repeat(np.arange(point.panes), point.pane_texts)
    columns = {name: texts.columns()[name] for name in (field.name for field in operator.fields)}
    expected = windows_of_texts(operator, times, columns)
    counts = texts_with_each_key(point, times, columns)
    keys = int(counts.sum()) // operator.size  # each of them is in so many windows
    with closing(SimulatedAggregate(manifest.path)) as device:
        codec = AggregateCodec(manifest)
        end = point.panes + operator.size
        words = np.concatenate(
            [
                codec.pack_tuples(times, columns),
                codec.pack_control("WATERMARK", end),
                codec.pack_control("FLUSH"),
            ]
        )
        room = len(expected) + end + 1
        results = np.zeros((room, manifest.result_word.columns), np.uint64)
        stamps = Stamps.for_arrays(words, results)
        done = device.exchange(
            words, results, cycles=MOST_CYCLES * (keys + len(words) + room), stamps=stamps
        )
    found = codec.unpack(results[: done.produced])
    kinds = manifest.result_kinds
    if done.accepted < len(words) or found.kind[-1] != kinds["MARK"]:
        raise DeviceError(
            f"The simulated aggregate took {done.accepted} of {len(words)} words in {done.cycles} "
            f"cycles, and sent no mark"
        )
    codec.check(results[: done.produced])
    is_value = found.kind == kinds["VALUE"]
    name = operator.reductions[0].name
    check_values(
        operator, expected, found.boundary[is_value], found.key[is_value],
        found.window[name][is_value],
    )  # fmt: skip
    # The accelerator begins with a scan of all rows, for which the first tuples wait.
    accepted = stamps.accepted[point.pane_texts : len(times)].astype(np.int64)
    return {
        "cycles": int(accepted[-1] - accepted[0]),
        "texts": len(accepted),
        "words": int(texts.lengths[point.pane_texts :].sum()),
        "keys": keys - int(counts[expected.window_end == 1].sum()),
        "results": len(expected),
    }


def windows_of_texts(operator, times, columns):
    """Return what the host gives for texts, in the order of (end, key), as a data frame."""
    rows = pa.table({"timestamp": times, **columns})
    return operate_tables([rows], OperatorQuery(operator)).to_pandas()


def texts_with_each_key(point, times, columns):
    """Return the number of texts of each window and key, in the order of the results."""
    kind = "wordcount" if point.kind == LONGEST else point.kind
    counted = counting(kind, most=point.most, bits=point.bits)
    named = {field.name: columns[field.name] for field in counted.fields}
    return windows_of_texts(counted, times, named).texts.to_numpy()


def check_values(operator, expected, boundary, key, value):
    """Raise :exc:`AssertionError` unless the results are those that are expected."""
    number, place = np.zeros(len(expected), np.int64), 0
    for field, name in zip(operator.key_fields, operator.key_names, strict=True):
        number |= expected[name].to_numpy() << place
        place += field.bits
    end = expected.window_end.to_numpy()
    wanted = np.lexsort((number, end))
    order = np.lexsort((key, boundary))
    pairs = (
        (boundary, end),
        (key, number),
        (value, expected[operator.reductions[0].name].to_numpy()),
    )
    if len(order) != len(wanted) or not all(
        (got[order] == other[wanted]).all() for got, other in pairs
    ):
        raise AssertionError("a window has another value than its texts")
