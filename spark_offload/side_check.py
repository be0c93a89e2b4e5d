# SPDX-License-Identifier: Apache-2.0
"""What is required of the rows of one side: a place in time, and the declared order."""

import pyarrow as pa

from host import UsageError
from host.errors import DisorderError

__all__ = ["SideCheck"]

_ROW_BITS = 33
"""Bits of an input row's number that count within its Spark partition."""


class SideCheck:
    """Checks the rows of one side of a partition as they pass.

    Row numbers must rise with the times where an input was declared sorted. A range of time begins
    with the last rows before it, as halo rows, so a row that goes back in time is found in some
    range, wherever it stands.

    Parameters
    ----------
    side : str
        Of which input, for messages.
    order : str
        Its order column.
    is_sorted : bool
        Whether the input was declared sorted.
    """

    def __init__(self, side: str, order: str, is_sorted: bool) -> None:
        self._side = side
        self._order = order
        self._is_sorted = is_sorted
        self._last: tuple[int, object] | None = None

    def see(self, batch: pa.RecordBatch, mask: pa.Array) -> None:
        """Check the rows of ``batch`` that ``mask`` selects; they come sorted by order and row.

        Raises
        ------
        UsageError
            If a row has no time, or goes back in time, naming it.
        """
        order = batch.column("order")
        if not (self._is_sorted or order.null_count):
            return
        rows, order = (column.filter(mask) for column in (batch.column("row"), order))
        if order.null_count:
            # Nulls sort first, and a null's row number is the least of them.
            raise UsageError(
                f"Order column {self._order!r} of the {self._side} input is null in "
                f"{_row_name(rows[0].as_py())}; a row without a place in time cannot be joined: "
                f"drop it, or fill the column."
            )
        if self._is_sorted and len(rows):
            self._require_rising(rows, order)

    def _require_rising(self, rows: pa.Array, order: pa.Array) -> None:
        """Raise if a later time belongs to an earlier row."""
        numbers = rows.to_numpy()
        if self._last is not None and numbers[0] < self._last[0]:
            self._raise(self._last[0], self._last[1], order[0].as_py())
        falls = (numbers[1:] < numbers[:-1]).nonzero()[0]
        if len(falls):
            at = int(falls[0])
            self._raise(int(numbers[at]), order[at].as_py(), order[at + 1].as_py())
        self._last = int(numbers[-1]), order[len(order) - 1].as_py()

    def _raise(self, row: int, earlier: object, later: object) -> None:
        raise DisorderError(
            f"{self._side}.{self._order}", (row & ((1 << _ROW_BITS) - 1)), later, earlier
        )


def _row_name(row: int) -> str:
    """Say which input row Spark's number means."""
    partition, within = row >> _ROW_BITS, row & ((1 << _ROW_BITS) - 1)
    of_partition = f" of its partition {partition}" if partition else ""
    return f"row {within}{of_partition} (the first is 0)"
