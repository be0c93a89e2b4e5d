# SPDX-License-Identifier: Apache-2.0
"""Encode two tables as two sequences of tuples: sorted, and with the row number of each tuple."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.encode.batches import BatchEncoder, EncodedBatch
from host.encode.contiguous import contiguous
from host.encode.fields import FieldPlan, TermTypes, rough_terms
from host.encode.plan import EncodingPlan, plan_tables
from host.encode.times import TimePlan
from host.manifest import Manifest
from host.query.join_query import JoinQuery
from host.reference.join_type import JoinType
from host.reference.predicate import Bounds
from host.reference.window import Window

__all__ = ["Arrangement", "EncodedJoin", "EncodedSide", "arrange", "encode"]

Array = npt.NDArray[Any]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class EncodedSide:
    """Tuples of one table in their order of arrival.

    Parameters
    ----------
    row : array of int64
        Row number in the table.
    timestamp : array of uint64
        Timestamps, which never decrease.
    keys : mapping of str to array
        Key fields.
    valid : array of bool or None
        Whether each tuple can match at all, because it has no null; None if all can.
    """

    row: Int64s
    timestamp: UInt64s
    keys: Mapping[str, Array]
    valid: Bools | None

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class EncodedJoin:
    """A query and its tables in the terms of one accelerator.

    Parameters
    ----------
    left, right : EncodedSide
        Tuples of R and of S.
    bounds : mapping of str to Bounds
        Bounds by key field; other fields are not bounded.
    window : CountWindow or TimeWindow
        Window in units of the timestamps, the same for both sides.
    fields : tuple of FieldPlan
        Encoding of the terms.
    times : TimePlan
        Encoding of the order columns.
    """

    left: EncodedSide
    right: EncodedSide
    bounds: Mapping[str, Bounds]
    window: Window
    fields: tuple[FieldPlan, ...]
    times: TimePlan

    @property
    def rough_terms(self) -> tuple[TermTypes, ...]:
        """Terms that some pairs with all fields within the bounds do not satisfy."""
        return rough_terms(self.fields)


def encode(left: pa.Table, right: pa.Table, query: JoinQuery, manifest: Manifest) -> EncodedJoin:
    """Encode two whole tables for the accelerator that ``manifest`` describes.

    For an inner join over a time-based window, rows that cannot match are left out.

    Raises
    ------
    UsageError
        As for :func:`~host.encode.plan.plan_tables`.
    """
    plan = plan_tables(left, right, query, manifest)
    encoder = BatchEncoder(plan, whole=query.how is not JoinType.INNER)
    signed = {key.name: key.signed for key in manifest.keys}
    sides = []
    for side, table in enumerate((left, right)):
        batch = _one_batch(table.select(plan.columns(side)))
        sides.append(_arranged(encoder.encode(side, batch), signed))
    return EncodedJoin(sides[0], sides[1], plan.bounds, plan.window, plan.fields, plan.times)


@dataclass(frozen=True)
class Arrangement:
    """The order and the times in which the rows of two tables arrive.

    Parameters
    ----------
    orders : tuple of (array of int64 or None)
        Row numbers in the order of arrival; None if that is the order of the table.
    times, rows : tuple of array
        Timestamps, ascending, and row numbers of the tuples that are sent.
    """

    orders: tuple[Int64s | None, Int64s | None]
    times: tuple[UInt64s, UInt64s]
    rows: tuple[Int64s, Int64s]


def arrange(plan: EncodingPlan, left: pa.Table, right: pa.Table) -> Arrangement:
    """Return the order in which the rows of two tables arrive."""
    encoder = BatchEncoder(plan)
    orders: list[Int64s | None] = []
    all_times, all_rows = [], []
    for side, table in enumerate((left, right)):
        times, valid = encoder.times(side, _one_batch(table.select(plan.columns(side))))
        rows: Int64s = np.arange(len(times))
        order: Int64s | None = None
        if (times[1:] < times[:-1]).any():
            rows = order = np.argsort(times, kind="stable")
            times = times[order]
        if valid is not None and plan.timed:
            sent = valid[rows]
            rows, times = rows[sent], times[sent]
        orders.append(order)
        all_times.append(times)
        all_rows.append(rows)
    return Arrangement(
        (orders[0], orders[1]), (all_times[0], all_times[1]), (all_rows[0], all_rows[1])
    )


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    columns = [contiguous(column) for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _arranged(batch: EncodedBatch, signed: Mapping[str, bool]) -> EncodedSide:
    """Return a batch with all fields computed, sorted by time."""
    keys: dict[str, Array] = {}
    for name, values in batch.keys.items():
        column = values.block(slice(None))
        keys[name] = column.view(np.int64) if signed[name] else column
    rows, times, valid = batch.row_numbers(0, len(batch)), batch.times, batch.valid
    if (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable")
        rows, times = rows[order], times[order]
        keys = {name: column[order] for name, column in keys.items()}
        valid = None if valid is None else valid[order]
    return EncodedSide(rows, times, keys, valid)
