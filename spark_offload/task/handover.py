# SPDX-License-Identifier: Apache-2.0
"""A partition that the device cannot hold: how large windows are, where another goes on."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from host.arrays import Bools, Int64s
from host.errors import AcceleratorLimitError, JoinError
from host.protocol.manifest import Manifest
from host.protocol.segments import largest_window, outgrown, side_label
from host.reference.arrivals import Side
from host.reference.types import JoinType
from host.session.intake import TaggedLayout, WindowGauge
from spark_offload.partitioning.tagged import ALONE_COLUMN, HALO_COLUMNS, LEAST, order_integers

__all__ = [
    "Handover",
    "WindowSize",
    "count_windows",
    "order_numbers",
]

# How many rows of a side a time-based window holds, counted as the rows pass.


class WindowSize:
    """The most rows of one side of a partition that the window has held.

    Parameters
    ----------
    width : int
        Of the window, as a difference of order numbers.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._held = {side: np.zeros(0, np.int64) for side in Side}
        self.largest = 0

    def see(self, batch: pa.RecordBatch) -> None:
        """Take the next tagged rows."""
        times, sides = order_numbers(batch), batch.column("side").to_numpy()
        for side in Side:
            own = times[sides == side]
            if len(own):
                self._see(side, own)

    def _see(self, side: Side, times: Int64s) -> None:
        held = np.concatenate([self._held[side], times])
        # As differences from the first, so that none is below zero.
        needed, _ = largest_window((held - held[0]).view(np.uint64), self._width, len(held))
        self.largest = max(self.largest, needed)
        oldest = max(LEAST, int(held[-1]) - self._width)
        self._held[side] = held[np.searchsorted(held, oldest) :]


def count_windows(tagged: DataFrame, width: int) -> int:
    """Read tagged rows, partitioned and sorted; return the most rows of a side in the window."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        size = WindowSize(width)
        for batch in batches:
            # A row without a time is complained of when it is joined.
            size.see(batch.filter(batch.column("order").is_valid()))
        yield pa.RecordBatch.from_pydict({"largest": [size.largest]})

    sizes = tagged.select("side", "order").mapInArrow(count, "largest bigint")
    return max((int(row.largest) for row in sizes.collect()), default=0)


def order_numbers(batch: pa.RecordBatch) -> Int64s:
    """Return the times of tagged rows as whole numbers, as far apart as the times are."""
    return order_integers(batch.column("order"))


# A partition that the device cannot hold: cut where it cannot, for another device to go on.
#
# The rows of a task are gauged before the device gets them. Before the first row that would find
# no room in the window, or whose time is so late that the device's timestamps do not reach it,
# the device's input just ends, so all its results stand. The join that goes on gets the rows that
# a later row can still meet as halo rows, whose pairs with one another are not in its results,
# and then the others: together every result once, in the order of arrival.
#
# Rows come alone in the same way: the first join answers for those that have left the window at
# the last row that it was given, the second one for all others. It is told of the rows of two
# windows back, so it finds again what has matched these.

_HALO = HALO_COLUMNS[1]


@dataclass(eq=False)
class Handover:
    """The rows of a partition on their way to a device, and to the one that goes on.

    Parameters
    ----------
    rows : RecordBatchReader
        Tagged rows in the order of arrival.
    layout : TaggedLayout
        Of the rows.
    how : JoinType
        Type of the join.
    width : int
        Of the time-based window, as a difference of order numbers.
    manifest : Manifest
        Of the device.
    strict : bool
        Whether an overflow is an error; all rows are then read for the capacity that they need. A
        time that is too late is then left to the device's encoding, whose error names the column.
    """

    rows: pa.RecordBatchReader
    layout: TaggedLayout
    how: JoinType
    width: int
    manifest: Manifest
    strict: bool

    def __post_init__(self) -> None:
        self._gauges = {side: WindowGauge(side, self.width, self.manifest) for side in Side}
        self._reach = self.width if self.how is JoinType.INNER else 2 * self.width
        # Batches that later rows can meet, each with its last time.
        self._met: deque[tuple[pa.RecordBatch, int]] = deque()
        self._last = 0  # time of the last row of the first device
        self._rest: pa.RecordBatch | None = None  # the first rows that the device does not get
        self._cut: tuple[Side, int] | None = None  # side of the first of them, and its number
        self._top = (1 << self.manifest.timestamp_bits) - 1
        self._begin: int | None = None  # time of the first row
        self._distance: int | None = None  # from there to the first of the rest, if too far
        self._counts = dict.fromkeys(Side, 0)
        self._size = WindowSize(self.width)
        #: Rows of both sides that the first device has not got.
        self.rest_rows = 0

    @property
    def is_needed(self) -> bool:
        """Whether rows have come that the device cannot hold."""
        return self._rest is not None

    def first(self) -> pa.RecordBatchReader:
        """Return the rows for the device, to be read once."""
        return pa.RecordBatchReader.from_batches(self.rows.schema, self._fitting())

    def rest(self) -> tuple[pa.RecordBatchReader, TaggedLayout]:
        """Return the rows for the join that goes on, to be read once, and where columns stand."""
        layout = replace(
            self.layout,
            halo=_HALO,
            alone=self.layout.alone if self.how is JoinType.INNER else ALONE_COLUMN,
        )
        schema = self.rows.schema
        for name in (layout.halo, layout.alone):
            if name is not None and name not in schema.names:
                schema = schema.append(pa.field(name, pa.bool_()))
        return pa.RecordBatchReader.from_batches(schema, self._continued(schema)), layout

    def error(self) -> JoinError:
        """Read all rows; return the error that says what they need."""
        assert self._cut is not None
        for _ in self._behind():
            pass
        side, number = self._cut
        if self._distance is not None:
            return AcceleratorLimitError(
                f"Row {number:,} of side {side_label(side)} (the first is 0) lies "
                f"{self._distance:,} units of time behind the first row of its partition, and the "
                f"timestamps of the device have {self.manifest.timestamp_bits} bits",
                "cast the order columns to a coarser unit, or use a bundle with more "
                "--timestamp-bits",
            )
        error = outgrown(self.manifest, side_label(side), self.needed, number)
        remedy = "For device 'sim:', build=True counts the windows and builds what they need."
        error.args = (f"{error} {remedy}",)
        return error

    @property
    def needed(self) -> int:
        """Rows of one side in the window when it was largest, so far, behind the cut."""
        return self._size.largest

    @property
    def reason(self) -> str:
        """Why another device went on, and from where."""
        assert self._cut is not None
        side, number = self._cut
        why = (
            f"the window came to hold {self.needed:,} rows of a side and the device has room for "
            f"{self.manifest.capacity:,}"
            if self._distance is None
            else f"its time lies {self._distance:,} units behind the first one and the device's "
            f"timestamps have {self.manifest.timestamp_bits} bits"
        )
        return (
            f"in software from row {number:,} of side {side_label(side)} on (the first is 0), as "
            f"{why}"
        )

    def _fitting(self) -> Iterator[pa.RecordBatch]:
        for batch in self.rows:
            times, sides = order_numbers(batch), batch.column(self.layout.side).to_numpy()
            cut = self._first_beyond(times, sides)
            fitting = batch if cut is None else batch.slice(0, cut)
            if fitting.num_rows:
                self._keep(fitting, int(times[fitting.num_rows - 1]))
            if cut is None:
                yield fitting
                continue
            self._rest = batch.slice(cut)
            for met, _ in self._met:
                self._size.see(met)
            if self.strict:
                raise self.error()
            if fitting.num_rows:
                yield fitting
            return

    def _first_beyond(self, times: Int64s, sides: npt.NDArray[np.int8]) -> int | None:
        """Return the place of the first row that the device cannot hold."""
        late = self._first_too_late(times)
        found = late
        for side, gauge in self._gauges.items():
            at = np.flatnonzero(sides[:late] == side)
            full = gauge.overflow(times[at].view(np.uint64))
            if full is not None and (found is None or at[full] < found):
                found = int(at[full])
                self._cut = side, self._counts[side] + full
            self._counts[side] += len(at)
        if late is not None and found == late:
            side = Side(int(sides[late]))
            self._cut = side, self._counts[side]
            self._distance = int(times[late]) - int(self._begin or 0)
        return found

    def _first_too_late(self, times: Int64s) -> int | None:
        """Return the place of the first row that the device's timestamps do not reach."""
        if self._begin is None and len(times):
            self._begin = int(times[0])
        if self.strict or not len(times) or int(times[-1]) - int(self._begin or 0) <= self._top:
            return None
        return int(np.searchsorted(times, int(self._begin or 0) + self._top, side="right"))

    def _keep(self, batch: pa.RecordBatch, last: int) -> None:
        """Keep a batch for the join that may go on; let go of those that nothing meets any more."""
        self._met.append((batch, last))
        self._last = last
        while self._met[0][1] < last - self._reach:
            self._met.popleft()

    def _continued(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        while self._met:
            batch, _ = self._met.popleft()
            yield self._flagged(batch, schema, np.ones(batch.num_rows, np.bool_))
        for batch in self._behind():
            own = np.zeros(batch.num_rows, np.bool_)
            if self.layout.halo is not None:
                own |= _flags(batch, self.layout.halo)
            yield self._flagged(batch, schema, own)

    def _flagged(self, batch: pa.RecordBatch, schema: pa.Schema, halo: Bools) -> pa.RecordBatch:
        """Return the rows with the columns that say which are halo rows, and which come alone."""
        columns = {name: batch.column(name) for name in batch.schema.names}
        columns[_HALO] = pa.array(halo)
        if ALONE_COLUMN in schema.names:
            # The others have left the window, and were answered for before the cut.
            alone = order_numbers(batch) >= max(LEAST, self._last - self.width)
            if self.layout.alone is not None:
                alone &= _flags(batch, self.layout.alone)
            columns[ALONE_COLUMN] = pa.array(alone)
        return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)

    def _behind(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows behind the cut, measuring the window."""
        batch = self._rest
        while batch is not None:
            self.rest_rows += batch.num_rows
            self._size.see(batch)
            yield batch
            batch = next(self.rows, None)


def _flags(batch: pa.RecordBatch, name: str) -> Bools:
    flags: Bools = batch.column(name).to_numpy(zero_copy_only=False)
    return flags
