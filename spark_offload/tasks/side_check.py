# SPDX-License-Identifier: Apache-2.0
"""What is required of the rows of one side: a place in time, and the declared order."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.errors import DisorderError, NullOrderError

__all__ = ["SideCheck"]

Int64s = npt.NDArray[np.int64]

_ROW_BITS = 33
"""Bits of an input row's number that count within its Spark partition."""


class SideCheck:
    """Checks the rows of one side of a partition as they pass.

    Row numbers must rise with the times where an input was declared sorted. A range of time begins
    with the last rows before it, as halo rows, so a row that goes back in time is found in some
    range, wherever it stands. Where each partition of the input was declared sorted by itself, row
    numbers must rise within each partition.

    Parameters
    ----------
    side : str
        Of which input, for messages.
    order : str
        Its order column.
    is_sorted : bool
        Whether the input was declared sorted.
    columns : sequence of str
        Its columns, to show a row with.
    first : int
        Place of the first of them in the batches.
    per_partition : bool
        Whether that was declared of each partition of the input by itself.
    """

    def __init__(
        self,
        side: str,
        order: str,
        is_sorted: bool,
        columns: Sequence[str],
        first: int,
        *,
        per_partition: bool = False,
    ) -> None:
        self._side = side
        self._columns = columns
        self._first = first
        self._order = order
        self._is_sorted = is_sorted
        self._per_partition = per_partition
        self._last: dict[int, tuple[int, object]] = {}  # by partition, 0 for a whole input

    def see(self, batch: pa.RecordBatch, mask: pa.Array) -> None:
        """Check the rows of ``batch`` that ``mask`` selects; they come sorted by order and row.

        Raises
        ------
        NullOrderError, DisorderError
            If a row has no time, or goes back in time, showing it.
        """
        order = batch.column("order")
        if not (self._is_sorted or order.null_count):
            return
        rows, order = (column.filter(mask) for column in (batch.column("row"), order))
        if order.null_count:
            # Spark's row numbers say nothing to a user, so the row itself is shown. Nulls sort
            # first, by the numbers of their rows.
            raise NullOrderError(f"{self._side}.{self._order}", row=self._row(batch.filter(mask)))
        if not self._is_sorted or not len(rows):
            return
        numbers = rows.to_numpy()
        if not self._per_partition:
            self._require_rising(0, numbers, order)
            return
        partitions = numbers >> _ROW_BITS
        for partition in np.unique(partitions).tolist():
            (own,) = np.nonzero(partitions == partition)
            self._require_rising(partition, numbers[own], order.take(pa.array(own)))

    def _require_rising(self, source: int, numbers: Int64s, order: pa.Array) -> None:
        """Raise if a later time belongs to an earlier row of the same source."""
        last = self._last.get(source)
        if last is not None and numbers[0] < last[0]:
            self._raise(last[0], last[1], order[0].as_py())
        (falls,) = np.nonzero(numbers[1:] < numbers[:-1])
        if len(falls):
            at = int(falls[0])
            self._raise(int(numbers[at]), order[at].as_py(), order[at + 1].as_py())
        self._last[source] = int(numbers[-1]), order[len(order) - 1].as_py()

    def _row(self, batch: pa.RecordBatch) -> dict[str, object]:
        """Return the first row of ``batch`` by the names of its columns."""
        places = range(self._first, self._first + len(self._columns))
        return {
            name: batch.column(place)[0].as_py()
            for name, place in zip(self._columns, places, strict=True)
        }

    def _raise(self, row: int, earlier: object, later: object) -> None:
        partition, within = row >> _ROW_BITS, row & ((1 << _ROW_BITS) - 1)
        raise DisorderError(
            f"{self._side}.{self._order}",
            within,
            later,
            earlier,
            partition=partition if partition or self._per_partition else None,
        )
