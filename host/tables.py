# SPDX-License-Identifier: Apache-2.0
"""The tables and streams that go into a join, and the schema of what comes out."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.column_names import output_names
from host.errors import UsageError
from host.join_type import JoinType
from host.side import Side

__all__ = ["Input", "Supply", "as_table", "is_stream", "output_schema"]

#: A table, or the batches of one.
Input: TypeAlias = pa.Table | pa.RecordBatchReader | Iterable[pa.RecordBatch]

#: Rows of a batch that is put together, because the rows of a table are not in order.
GATHERED = 1 << 15


def is_stream(rows: Input) -> bool:
    """Whether batches come one after the other, as opposed to lying in memory."""
    return not isinstance(rows, (pa.Table, list, tuple))


def as_table(rows: Input) -> pa.Table:
    """Gather batches into a table."""
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    return pa.Table.from_batches(list(rows))


class Supply:
    """Batches of an input, as often as it can be read.

    Parameters
    ----------
    rows : pa.Table, pa.RecordBatchReader or iterable of pa.RecordBatch
        A reader or an iterator can be read once; other iterables are iterated anew.
    order : array of int64, optional
        Of a table: its rows in the order in which they are wanted.

    Attributes
    ----------
    schema : pa.Schema
        Of the batches.

    Raises
    ------
    UsageError
        If there is no batch, and so no schema.
    """

    def __init__(self, rows: Input, order: npt.NDArray[np.int64] | None = None) -> None:
        self._rows: Input = rows
        self._order = order
        self._once = False
        self._used = False
        if isinstance(rows, (list, tuple)):
            self._rows = pa.Table.from_batches(rows)
        if isinstance(self._rows, pa.Table):
            self.schema = self._rows.schema
        elif isinstance(self._rows, pa.RecordBatchReader):
            self.schema, self._once = self._rows.schema, True
        else:
            batches = iter(self._rows)
            first = next(batches, None)
            if first is None:
                raise UsageError(
                    "An input without any batch has no schema; give a pyarrow.RecordBatchReader "
                    "or a table instead."
                )
            self.schema = first.schema
            if batches is self._rows:
                self._rows, self._once = chain([first], batches), True

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the batches.

        Raises
        ------
        UsageError
            If they can be read once, and have been.
        """
        if self._once and self._used:
            raise UsageError(
                "A reader or iterator of batches can be joined once, and it has been; give a "
                "table to join it again."
            )
        self._used = True
        if not isinstance(self._rows, pa.Table):
            return iter(self._rows)
        if self._order is None:
            return iter(self._rows.to_batches())
        return self._gathered(self._rows, self._order)

    @staticmethod
    def _gathered(table: pa.Table, order: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        for begin in range(0, len(order), GATHERED):
            part = table.take(pa.array(order[begin : begin + GATHERED]))
            yield from part.combine_chunks().to_batches()


def output_schema(
    left: pa.Schema,
    right: pa.Schema,
    suffix: str = "_right",
    how: JoinType = JoinType.INNER,
) -> pa.Schema:
    """Return the schema of a result: the left columns, then the right ones if there are pairs.

    Columns that are null where a row comes alone are nullable, whatever they are in the input.

    Raises
    ------
    UsageError
        If a name stands twice in an input, or would stand twice in the answer even with the suffix;
        see :mod:`host.column_names`.
    """
    names = output_names(left.names, right.names, suffix, how)
    fields = [_nullable(field, how, Side.R) for field in left]
    if how.has_pairs:
        fields += [_nullable(field, how, Side.S) for field in right]
    return pa.schema(field.with_name(name) for field, name in zip(fields, names, strict=True))


def _nullable(field: pa.Field, how: JoinType, side: Side) -> pa.Field:
    return field.with_nullable(True) if how.nulls(side) else field
