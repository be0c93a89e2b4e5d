# SPDX-License-Identifier: Apache-2.0
"""How many rows of a side a time-based window holds, counted as the rows pass."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from host.protocol.segments import largest_window
from host.reference.arrivals import Side
from spark_offload.layout.order_axis import LEAST

__all__ = ["WindowSize", "count_windows", "order_numbers"]

Int64s = npt.NDArray[np.int64]


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
    order = batch.column("order")
    if pa.types.is_date32(order.type):
        order = order.cast(pa.int32())
    numbers: Int64s = order.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers
