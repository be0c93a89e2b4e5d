# SPDX-License-Identifier: Apache-2.0
"""Rows on their way through a fused pass: columns, and selections that are applied late."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from host.errors import FailureError, UnknownColumnError, UsageError

__all__ = ["CopyCounters", "ReadOnlyError", "Rows"]

Array = npt.NDArray[Any]
Int64s = npt.NDArray[np.int64]


class ReadOnlyError(FailureError):
    """An operator tried to write into rows that it received as a constant reference."""


@dataclass
class CopyCounters:
    """Counts of batches and copies.

    Attributes
    ----------
    batches_in, batches_out : int
        Batches that entered and left passes.
    copies : int
        Batches that were copied because a consumer writes into them.
    columns : int
        Columns that were written to new arrays, for a selection or to be written into.
    bytes : int
        Size of these columns in bytes.
    """

    batches_in: int = 0
    batches_out: int = 0
    copies: int = 0
    columns: int = 0
    bytes: int = 0

    def add(self, other: "CopyCounters") -> None:
        """Add the counts of ``other``."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class _Column:
    """A column to which the first ``level`` selections have been applied."""

    values: pa.Array | Array
    level: int


class Rows:
    """A batch on its way through a pass.

    A selection (:meth:`keep`) copies nothing. When a column is first read, all selections since the
    last read are applied to it at once; a column that is never read is never copied.

    Parameters
    ----------
    columns : mapping of str to Array or ndarray
        Columns of one length.
    num_rows : int
        Length of the columns.
    counters : CopyCounters
        Counters of copies.
    owned : iterable of str
        Names of columns, given as NumPy arrays, that nobody else refers to.
    """

    __slots__ = ("_columns", "_composed", "_constant", "_owned", "_picks", "counters", "num_rows")

    def __init__(
        self,
        columns: Mapping[str, pa.Array | Array],
        num_rows: int,
        counters: CopyCounters,
        owned: Iterable[str] = (),
    ) -> None:
        self._columns = {name: _Column(values, 0) for name, values in columns.items()}
        self.num_rows = num_rows
        self.counters = counters
        self._owned = set(owned)
        self._constant = False
        self._picks: list[Int64s] = []  # per selection: the rows it kept of those before it
        self._composed: dict[int, Int64s] = {}

    @classmethod
    def of_batch(cls, batch: pa.RecordBatch, counters: CopyCounters) -> "Rows":
        """Return the rows of a batch that others may refer to."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        return cls(columns, batch.num_rows, counters)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(self._columns)

    def column(self, name: str) -> pa.Array:
        """Return a column as an Arrow array, with selections applied."""
        values = self._current(name)
        return pa.array(values) if isinstance(values, np.ndarray) else values

    def array(self, name: str) -> Array:
        """Return a column as a read-only NumPy array, with selections applied."""
        values = self._current(name)
        view: Array = (
            values if isinstance(values, np.ndarray) else values.to_numpy(zero_copy_only=False)
        ).view()
        view.flags.writeable = False
        return view

    def writable(self, name: str) -> Array:
        """Return a column as an array to write into; it is copied unless the rows own it.

        Raises
        ------
        ReadOnlyError
            If these rows are a constant reference.
        """
        self._require_own(f"Column {name!r} is written into", "declare that it mutates its input")
        column = self._known(name)
        if name in self._owned and column.level == len(self._picks):
            owned: Array = column.values
            return owned
        values = column.values
        if isinstance(values, pa.Array):
            if values.null_count:
                raise UsageError(
                    f"Column {name!r} has nulls, so it cannot be written into as an array; fill "
                    f"them first."
                )
            values = values.to_numpy(zero_copy_only=False)
        picked = self._selection(column.level)
        fresh = values.copy() if picked is None else values.take(picked)
        self._count(fresh.nbytes)
        self._columns[name] = _Column(fresh, len(self._picks))
        self._owned.add(name)
        return fresh

    def keep(self, mask: pa.Array | npt.NDArray[np.bool_]) -> None:
        """Select the rows for which ``mask`` is true (null counts as false)."""
        self._require_own("Rows are selected", "do that with rows.handed_on()")
        kind = mask.dtype if isinstance(mask, np.ndarray) else mask.type
        if str(kind) != "bool" or len(mask) != self.num_rows:
            raise UsageError(
                f"A condition must give {self.num_rows} booleans, one for each row, not "
                f"{len(mask)} of type {kind}."
            )
        if not isinstance(mask, np.ndarray):
            filled = pc.fill_null(mask, False) if mask.null_count else mask
            mask = filled.to_numpy(zero_copy_only=False)
        # Row numbers are faster than masks to find, to compose and to take by.
        picked = np.flatnonzero(mask)
        if len(picked) < self.num_rows:
            self._picks.append(picked)
            self._composed.clear()
            self.num_rows = len(picked)

    def put(self, name: str, values: pa.Array | Array) -> None:
        """Add a column, or replace one in its position."""
        self._require_own(f"Column {name!r} is put", "do that with rows.handed_on()")
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if len(values) != self.num_rows:
            raise UsageError(
                f"Column {name!r} must have {self.num_rows} values, one for each row, not "
                f"{len(values)}."
            )
        self._columns[name] = _Column(values, len(self._picks))
        self._owned.discard(name)

    def project(self, columns: Mapping[str, str]) -> "Rows":
        """Return these rows with only the columns ``{new name: old name}``."""
        result = self.handed_on()
        result._columns = {new: self._known(old) for new, old in columns.items()}
        return result

    def copy(self) -> "Rows":
        """Return rows that may be written into; a column is copied when first written into."""
        self.counters.copies += 1
        return self.handed_on()

    def handed_on(self) -> "Rows":
        """Return the same rows for selecting and adding columns; existing columns stay shared."""
        result = Rows({}, self.num_rows, self.counters)
        result._columns = dict(self._columns)
        result._picks = list(self._picks)
        result._composed = dict(self._composed)
        return result

    def read_only(self) -> "Rows":
        """Return the same rows as a constant reference; columns read by one are read for both."""
        result = Rows({}, self.num_rows, self.counters)
        result._columns, result._picks = self._columns, self._picks
        result._composed, result._constant = self._composed, True
        return result

    def batch(self) -> pa.RecordBatch:
        """Return the rows as a batch."""
        columns = [self.column(name) for name in self._columns]
        if not columns:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * self.num_rows, pa.struct([])))
        return pa.RecordBatch.from_arrays(columns, names=list(self._columns))

    def _require_own(self, act: str, remedy: str) -> None:
        if self._constant:
            raise ReadOnlyError(
                f"{act}, but these rows are a constant reference; the operator must {remedy}."
            )

    def _known(self, name: str) -> _Column:
        try:
            return self._columns[name]
        except KeyError:
            raise UnknownColumnError(name, list(self._columns)) from None

    def _current(self, name: str) -> pa.Array | Array:
        column = self._known(name)
        picked = self._selection(column.level)
        if picked is None:
            return column.values
        if isinstance(column.values, np.ndarray):
            values: pa.Array | Array = column.values.take(picked)
        else:
            values = column.values.take(pa.array(picked))
        self._count(values.nbytes)
        self._columns[name] = _Column(values, len(self._picks))
        return values

    def _selection(self, level: int) -> Int64s | None:
        """Return all selections from ``level`` on as one; None if there is none."""
        later = self._picks[level:]
        if len(later) < 2:
            return later[0] if later else None
        if level not in self._composed:
            rest = self._selection(level + 1)
            assert rest is not None
            self._composed[level] = later[0].take(rest)
        return self._composed[level]

    def _count(self, size: int) -> None:
        self.counters.columns += 1
        self.counters.bytes += size
