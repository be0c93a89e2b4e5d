# SPDX-License-Identifier: Apache-2.0
"""Aggregates of matches on an accelerator that sends one word per left row."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.device import Device
from host.device.thread import DeviceThread
from host.encode import EncodedJoin, encode
from host.errors import AcceleratorLimitError, DeviceError
from host.exchange.configuration import MARKS, configuration
from host.exchange.watch import Deadline, DeviceWatch
from host.join.match_passes import MatchPass, passes_of
from host.manifest import JoinAggregateManifest
from host.query.join_query import JoinQuery
from host.query.ordering import Ordering
from host.reference.exact import UInt64s
from host.reference.side import Side
from host.reference.window import TimeWindow
from host.words import MatchCodec

__all__ = ["DeviceMatches", "MatchedValues", "require_exact"]

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Results that are collected at a time, and clock cycles of one exchange.
_RESULT_WORDS, _EXCHANGE_CYCLES = 1 << 14, 1 << 22


@dataclass(frozen=True)
class MatchedValues:
    """What the matches of each left row are reduced to, one entry per row of the left table.

    Parameters
    ----------
    count : array of int64
        Number of matches with a value.
    total : array of int64 or object
        Sum of the values; Python integers if 64 bits might not hold it.
    least, most : array of int64
        The least and the greatest value; without meaning where there is none.
    """

    count: Int64s
    total: npt.NDArray[Any]
    least: Int64s
    most: Int64s


class DeviceMatches:
    """A query that an open join aggregate answers, once for each column that is aggregated.

    Parameters
    ----------
    left, right : pa.Table
        The rows.
    query : JoinQuery
        Which rows match; an inner join.
    device : Device
        An open device with a :class:`~host.manifest.JoinAggregateManifest`, which nobody else uses
        meanwhile; it stays open.
    deadline : Deadline
        Longest time without progress of the device.
    watch : DeviceWatch
        What sums the work of the device, and has a deadline itself; by default a new one.

    Raises
    ------
    UsageError
        If the query does not suit the inputs or the device.
    """

    def __init__(
        self,
        left: pa.Table,
        right: pa.Table,
        query: JoinQuery,
        device: Device,
        deadline: Deadline | None = None,
        watch: DeviceWatch | None = None,
    ) -> None:
        manifest = device.manifest
        assert isinstance(manifest, JoinAggregateManifest)
        self._manifest = manifest
        self._codec = MatchCodec(manifest)
        self._device = device
        self._deadline = Deadline() if deadline is None else deadline
        self._rows = left.num_rows
        self._join = encode(left, right, query, manifest)
        require_exact(self._join)
        self._passes = passes_of(self._join, manifest)
        self.watch = DeviceWatch(device, self._deadline) if watch is None else watch

    def values(self, values: Int64s, valid: Bools | None, name: str) -> MatchedValues:
        """Return what one column of the right table is reduced to for each left row.

        Parameters
        ----------
        values : array of int64
            Value of each right row.
        valid : array of bool or None
            Which right rows have a value; None if all have one.
        name : str
            Name of the column, for errors.

        Raises
        ------
        AcceleratorLimitError
            If the values lie too far apart.
        WindowOverflowError
            If the accelerator has no room for the rows that a left row may meet.
        DeviceError
            If the accelerator reports a fault, or makes no progress.
        """
        side = self._join.right
        sent = np.ones(len(side), np.bool_) if side.valid is None else side.valid
        if valid is not None:
            sent = sent & valid[side.row]
        own = values[side.row]
        base = self._base(own[sent], name)
        half = 1 << self._manifest.value_bits - 1
        found = MatchedValues(
            np.zeros(self._rows, np.int64),
            np.zeros(self._rows, np.int64),
            np.full(self._rows, half - 1),
            np.full(self._rows, -half),
        )
        left = self._join.left
        probing = np.ones(len(left), np.bool_) if left.valid is None else left.valid
        rows = left.row[probing]
        for one in self._passes:
            answer = self._run(one.of(sent, probing), own[sent] - base, sent, probing)
            found.count[rows] += answer["count"]
            found.total[rows] += answer["total"]
            found.least[rows] = np.minimum(found.least[rows], answer["least"])
            found.most[rows] = np.maximum(found.most[rows], answer["most"])
        return _moved(found, base)

    def _base(self, values: Int64s, name: str) -> int:
        """Return the number that is taken from values so that they fit the accelerator's."""
        if not len(values):
            return 0
        least, most = int(values.min()), int(values.max())
        bits = self._manifest.value_bits
        if (needed := (most - least).bit_length()) > bits:
            raise AcceleratorLimitError(
                f"Values of column {name!r} from {least} to {most} need {needed} bits, but the "
                f"accelerator has {bits} beside a key",
                f"generate it with --value-bits {needed}, or aggregate on 'software:'",
            )
        return min(least + (1 << bits - 1), int(np.iinfo(np.int64).max))

    def _run(
        self, chosen: MatchPass, values: Int64s, sent: Bools, probing: Bools
    ) -> dict[str, Int64s]:
        """Send one pass; return the reductions of the left rows in it."""
        chosen.require_room(self._manifest)
        words = self._words(chosen, values, sent, probing)
        window = TimeWindow(chosen.lifespan)
        setting = configuration(self._manifest, self._join.bounds, window, Ordering.none())
        words = np.concatenate([setting, words, self._codec.pack_control("FLUSH")])
        results = self._codec.unpack_results(self._exchanged(words, MARKS + 1))
        if results.overflow.any() or results.disorder.any() or results.illegal.any():
            raise DeviceError(
                f"Device {self._device.uri!r} reports a fault of a pass that was checked before "
                f"it was sent; its bundle is not what its manifest says, generate it again."
            )
        is_value = results.kind == self._codec.value
        if int(is_value.sum()) != len(chosen.now):
            raise DeviceError(
                f"Device {self._device.uri!r} has sent {int(is_value.sum())} values for "
                f"{len(chosen.now)} left rows; its bundle is not what its manifest says, generate "
                f"it again."
            )
        return {name: column[is_value] for name, column in results.values.items()}

    def _words(self, chosen: MatchPass, values: Int64s, sent: Bools, probing: Bools) -> UInt64s:
        """Return the tuples of a pass in the order in which they are sent."""
        places = chosen.after + np.arange(len(chosen.after))
        sides = np.full(len(chosen.stored) + len(chosen.now), Side.S, np.uint8)
        sides[places] = Side.R
        is_left = sides == Side.R
        keys = {}
        for name, column in self._join.right.keys.items():
            keys[name] = np.empty(len(sides), column.dtype)
            keys[name][~is_left] = column[sent]
            keys[name][is_left] = self._join.left.keys[name][probing]
        times = np.empty(len(sides), np.uint64)
        times[~is_left], times[is_left] = chosen.stored, chosen.now
        beside = np.zeros(len(sides), np.int64)
        beside[~is_left] = values
        return self._codec.pack_tuples(sides, keys, times, beside)

    def _exchanged(self, words: UInt64s, marks: int) -> UInt64s:
        """Send words; return all results up to the mark that answers the last of them."""
        room = np.zeros((_RESULT_WORDS, self._manifest.result_word.columns), np.uint64)
        arrived = []
        thread = DeviceThread(self._device)
        try:
            while marks:
                thread.begin(words, room, cycles=_EXCHANGE_CYCLES)
                finished = thread.finish(self._deadline.of_exchange)
                self.watch.see(finished)
                words = words[finished.done.accepted :]
                arrived.append(room[: finished.done.produced].copy())
                marks -= int(self._codec.marks(arrived[-1]).sum())
        finally:
            thread.close()
        return np.concatenate(arrived)


def _moved(found: MatchedValues, base: int) -> MatchedValues:
    """Return the reductions of values that ``base`` is added to again."""
    most = int(found.count.max()) if len(found.count) else 0
    largest = int(np.abs(found.total).max()) if len(found.total) else 0
    total: npt.NDArray[Any] = found.total
    if largest + most * abs(base) > np.iinfo(np.int64).max:
        total = total.astype(object)
    some = found.count > 0
    return MatchedValues(
        found.count,
        total + found.count.astype(total.dtype) * base,
        np.where(some, found.least + base, 0),
        np.where(some, found.most + base, 0),
    )


def require_exact(join: EncodedJoin) -> None:
    """Raise unless every match of the device is a match of the query: it sends no pairs to check.

    Raises
    ------
    AcceleratorLimitError
        If a term needs a second look at its pairs.
    """
    if join.rough_terms:
        term = join.rough_terms[0].term
        raise AcceleratorLimitError(
            f"The pairs of {term} must be compared once more by their rows, but the accelerator "
            f"sends no pairs",
            "compare integers, times or whole decimals, or use a device of pairs, such as "
            "'software:'",
        )
