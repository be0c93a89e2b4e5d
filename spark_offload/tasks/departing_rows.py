# SPDX-License-Identifier: Apache-2.0
"""Which rows leave a count-based window in the range of their partition, told as they pass."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host import FailureError
from spark_offload.layout.halos import HaloCounts
from spark_offload.layout.tagged import ALONE_COLUMN

__all__ = ["DepartingRows"]

_SIDES = ("left", "right")


class DepartingRows:
    """Adds a column that tells which rows the partition answers for if they come alone.

    A row leaves the window with the row of its own side that is so many rows behind it. The
    partition answers for the row if that one is its own; the last partition also if there is none.
    Which rows are the last ones of a range is known from the counts only.

    Parameters
    ----------
    counts : HaloCounts
        How many rows of either side come: the halo, cut down to what is needed, and the own ones.
    size : int
        Of the window.
    """

    def __init__(self, counts: HaloCounts, size: int) -> None:
        self._counts = counts
        self._size = size
        self._part: int | None = None
        self._seen = [0, 0]

    def see(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return ``batch`` with the column :data:`~spark_offload.layout.tagged.ALONE_COLUMN`."""
        if self._part is None and batch.num_rows:
            # The task itself may have another number, as in a union with other frames.
            self._part = batch.column("part")[0].as_py()
        sides = batch.column("side").to_numpy()
        alone = np.zeros(batch.num_rows, np.bool_)
        for side in range(len(_SIDES)):
            rows = np.flatnonzero(sides == side)
            if len(rows):
                pushed_by = self._size + self._seen[side] + np.arange(len(rows))
                alone[rows] = self._in_range(side, pushed_by)
                self._seen[side] += len(rows)
        return batch.append_column(ALONE_COLUMN, pa.array(alone))

    def finish(self) -> None:
        """No rows follow.

        Raises
        ------
        FailureError
            If there were more or fewer of them than were counted when the ranges were cut.
        """
        if self._part is None:
            return
        for side, name in enumerate(_SIDES):
            halo, own = self._counts.needed[self._part][side], self._counts.own[self._part][side]
            if self._seen[side] != halo + own:
                raise FailureError(
                    f"The {name} input changed while it was joined: range {self._part} of the "
                    f"order column has {self._seen[side] - halo:,} rows, not {own:,} as counted "
                    f"before; write the input to a table or persist() it, or take partitions=1."
                )

    def _in_range(self, side: int, pushed_by: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether rows of one side, by their places in the partition, are its own or missing."""
        assert self._part is not None  # there is a row
        halo, own = self._counts.needed[self._part][side], self._counts.own[self._part][side]
        inside = pushed_by >= halo
        is_last = self._part == len(self._counts.own) - 1
        return inside if is_last else inside & (pushed_by < halo + own)
