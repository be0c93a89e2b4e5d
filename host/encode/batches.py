# SPDX-License-Identifier: Apache-2.0
"""Encode the rows of both sides as tuples, batch by batch, with a plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.encode.kinds import integer_view, row_at, shown, validity
from host.encode.plan import EncodingPlan
from host.encode.values import FieldValues
from host.errors import DisorderError, NullOrderError

__all__ = ["BatchEncoder", "EncodedBatch"]

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class EncodedBatch:
    """Tuples of one side in their order of arrival.

    Parameters
    ----------
    first : int
        Row number of the first tuple if no row was left out.
    rows : array of int64 or None
        Row number of each tuple if rows were left out.
    times : array of uint64
        Timestamps, which never decrease.
    keys : mapping of str to FieldValues
        Key fields; the value at the place of a null is undefined.
    valid : array of bool or None
        Whether each tuple can match at all, because it has no null; None if all can.
    all_times : array of uint64
        Timestamps of all rows, including those that were left out.
    """

    first: int
    rows: Int64s | None
    times: UInt64s
    keys: Mapping[str, FieldValues]
    valid: Bools | None
    all_times: UInt64s

    def __len__(self) -> int:
        return len(self.times)

    def row_numbers(self, begin: int, end: int) -> Int64s:
        """Return the row numbers of some tuples, counted from the beginning of the stream."""
        if self.rows is None:
            return np.arange(self.first + begin, self.first + end)
        return self.rows[begin:end]


class _SideState:
    """The state of one side that is kept from batch to batch."""

    def __init__(self) -> None:
        self.rows = 0
        self.last: tuple[int, object] | None = None  # last time: integer, Python value


class BatchEncoder:
    """Encoder of the batches of one execution.

    Parameters
    ----------
    plan : EncodingPlan
        Plan of the encoding.
    whole : bool
        Whether rows that cannot match are encoded even if no window depends on them.
    """

    def __init__(self, plan: EncodingPlan, *, whole: bool = False) -> None:
        self._plan = plan
        self._whole = whole or not plan.timed
        self._times = plan.times.start()
        self._fields = {field.name: field.start() for field in plan.fields}
        self._sides = (_SideState(), _SideState())

    def settle(self, batches: Sequence[tuple[int, pa.RecordBatch]]) -> None:
        """Learn from the first batches, given with their sides, before any of them is encoded.

        The first batches of both sides must be given, unless a side has no rows at all.
        """
        self._times.settle([(side, self._order(side, batch)) for side, batch in batches])
        for field in self._fields.values():
            field.settle(batches)

    def floor(self, ticks: int) -> int:
        """Return the greatest timestamp that is not later than a time; see
        :meth:`host.encode.times.TimeEncoder.floor`.

        The encoder must be settled.
        """
        return self._times.floor(ticks)

    def encode(self, side: int, batch: pa.RecordBatch) -> EncodedBatch:
        """Encode the next rows of one side.

        Raises
        ------
        UsageError
            If a value does not fit, or a time is null or decreases; the error names the row.
        """
        state = self._sides[side]
        first = state.rows
        values = self._order(side, batch)
        if not self._plan.checked:
            self._require_order(side, batch, values)
        times = self._times.encode(side, values, first)
        keys = {name: field.encode(side, batch, first) for name, field in self._fields.items()}
        valid = self._valid(side, batch)
        state.rows += batch.num_rows
        if valid is None or self._whole:
            return EncodedBatch(first, None, times, keys, valid, times)
        # These rows can neither match nor push a tuple out of a time-based window, so they are not
        # sent.
        kept = np.flatnonzero(valid)
        keys = {name: field.of_rows(kept) for name, field in keys.items()}
        return EncodedBatch(first, kept + first, times[kept], keys, None, times)

    def times(self, side: int, batch: pa.RecordBatch) -> tuple[UInt64s, Bools | None]:
        """Return the timestamps of all rows of a table, and which can match; None if all can."""
        return self._times.encode(side, self._order(side, batch), 0), self._valid(side, batch)

    def _order(self, side: int, batch: pa.RecordBatch) -> Array:
        return integer_view(self._plan.times.columns[side].read(batch))

    def _require_order(self, side: int, batch: pa.RecordBatch, values: Array) -> None:
        state, column = self._sides[side], self._plan.times.columns[side]
        array = column.read(batch)
        if array.null_count:
            valid = array.is_valid().to_numpy(zero_copy_only=False)
            at = int(np.argmin(valid))
            raise NullOrderError(column.name, state.rows + at, row_at(batch, at))
        if not len(values):
            return
        if state.last is not None and int(values[0]) < state.last[0]:
            raise DisorderError(column.name, state.rows, state.last[1], shown(array[0]))
        falls = values[1:] < values[:-1]
        if falls.any():
            at = int(np.argmax(falls))
            raise DisorderError(
                column.name, state.rows + at + 1, shown(array[at]), shown(array[at + 1])
            )
        state.last = int(values[-1]), shown(array[len(array) - 1])

    def _valid(self, side: int, batch: pa.RecordBatch) -> Bools | None:
        masks = [validity(term.columns[side].read(batch)) for term in self._plan.terms]
        present = [mask for mask in masks if mask is not None]
        return np.logical_and.reduce(present) if present else None
