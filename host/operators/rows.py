# SPDX-License-Identifier: Apache-2.0
"""Rows on their way through a fused pass: columns, and a selection that is applied late."""

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


class ReadOnlyError(FailureError):
    """An operator writes into rows that it was given as a constant reference."""


@dataclass
class CopyCounters:
    """What moving rows has cost.

    Attributes
    ----------
    batches_in, batches_out : int
        Batches that entered and left passes.
    copies : int
        Batches that were copied because a consumer writes into them.
    columns : int
        Columns that were written anew: by a selection, or to be written into.
    bytes : int
        Their size.
    """

    batches_in: int = 0
    batches_out: int = 0
    copies: int = 0
    columns: int = 0
    bytes: int = 0

    def add(self, other: "CopyCounters") -> None:
        """Add up."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class _Column:
    """A column of which the first ``level`` selections have been applied."""

    values: pa.Array | Array
    level: int


class Rows:
    """A batch in flight.

    A selection (:meth:`keep`) copies nothing: a column is filtered when somebody first reads it,
    with all selections since then at once, and never if nobody does.

    Parameters
    ----------
    columns : mapping of str to Array or ndarray
        Columns of one length.
    num_rows : int
        That length.
    counters : CopyCounters
        Where copies are counted.
    owned : iterable of str
        Columns, as arrays, that nobody else refers to.
    """

    __slots__ = ("_columns", "_composed", "_constant", "_masks", "_owned", "counters", "num_rows")

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
        self._masks: list[pa.BooleanArray] = []  # a null counts as false
        self._composed: dict[int, pa.BooleanArray] = {}

    @classmethod
    def of_batch(cls, batch: pa.RecordBatch, counters: CopyCounters) -> "Rows":
        """Rows of a batch that others may refer to."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        return cls(columns, batch.num_rows, counters)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(self._columns)

    def column(self, name: str) -> pa.Array:
        """Return a column as an Arrow array, selections applied."""
        values = self._current(name)
        return pa.array(values) if isinstance(values, np.ndarray) else values

    def array(self, name: str) -> Array:
        """Return a column as a read-only NumPy array, selections applied."""
        values = self._current(name)
        view: Array = (
            values if isinstance(values, np.ndarray) else values.to_numpy(zero_copy_only=False)
        ).view()
        view.flags.writeable = False
        return view

    def writable(self, name: str) -> Array:
        """Return a column as an array to write into; copied first unless it is the rows' own.

        Raises
        ------
        ReadOnlyError
            If these rows are a constant reference.
        """
        if self._constant:
            raise ReadOnlyError(
                f"Column {name!r} is written into, but its rows are a constant reference; the "
                f"operator must declare that it mutates its input."
            )
        column = self._known(name)
        if name in self._owned and column.level == len(self._masks):
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
        mask = self._selection(column.level)
        fresh = values.copy() if mask is None else values[_bools(mask)]
        self._count(fresh.nbytes)
        self._columns[name] = _Column(fresh, len(self._masks))
        self._owned.add(name)
        return fresh

    def keep(self, mask: pa.Array | npt.NDArray[np.bool_]) -> None:
        """Select the rows for which ``mask`` is true (null counts as false)."""
        kind = mask.dtype if isinstance(mask, np.ndarray) else mask.type
        if str(kind) != "bool" or len(mask) != self.num_rows:
            raise UsageError(
                f"A condition must give {self.num_rows} booleans, one for each row, not "
                f"{len(mask)} of type {kind}."
            )
        if isinstance(mask, np.ndarray):
            mask = pa.array(mask)
        elif isinstance(mask, pa.ChunkedArray):
            mask = mask.combine_chunks()
        count = mask.true_count
        if count < self.num_rows:
            self._masks.append(mask)
            self._composed.clear()
            self.num_rows = count

    def put(self, name: str, values: pa.Array | Array) -> None:
        """Add a column, or replace one; it stays where it was."""
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if len(values) != self.num_rows:
            raise UsageError(
                f"Column {name!r} must have {self.num_rows} values, one for each row, not "
                f"{len(values)}."
            )
        self._columns[name] = _Column(values, len(self._masks))
        self._owned.discard(name)

    def project(self, columns: Mapping[str, str]) -> "Rows":
        """Return these rows with the columns ``{new name: old name}`` only."""
        result = self.handed_on()
        result._columns = {new: self._known(old) for new, old in columns.items()}
        return result

    def copy(self) -> "Rows":
        """Rows of one's own: a column is copied when it is first written into."""
        self.counters.copies += 1
        return self.handed_on()

    def handed_on(self) -> "Rows":
        """The same rows for an operator to select from and add to; what is shared stays shared."""
        result = Rows({}, self.num_rows, self.counters)
        result._columns = dict(self._columns)
        result._masks = list(self._masks)
        result._composed = dict(self._composed)
        return result

    def read_only(self) -> "Rows":
        """The same rows as a constant reference."""
        result = self.handed_on()
        result._constant = True
        return result

    def batch(self) -> pa.RecordBatch:
        """Return the rows as a batch."""
        columns = [self.column(name) for name in self._columns]
        if not columns:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * self.num_rows, pa.struct([])))
        return pa.RecordBatch.from_arrays(columns, names=list(self._columns))

    def _known(self, name: str) -> _Column:
        try:
            return self._columns[name]
        except KeyError:
            raise UnknownColumnError(name, list(self._columns)) from None

    def _current(self, name: str) -> pa.Array | Array:
        column = self._known(name)
        mask = self._selection(column.level)
        if mask is None:
            return column.values
        if isinstance(column.values, np.ndarray):
            values: pa.Array | Array = column.values[_bools(mask)]
        else:
            values = column.values.filter(mask)
        self._count(values.nbytes)
        self._columns[name] = _Column(values, len(self._masks))
        return values

    def _selection(self, level: int) -> pa.BooleanArray | None:
        """All selections from ``level`` on as one; None if there is none."""
        if level == len(self._masks):
            return None
        if level == len(self._masks) - 1:
            return self._masks[level]
        if level not in self._composed:
            later = self._selection(level + 1)
            assert later is not None
            both = _bools(self._masks[level])
            both[both] = _bools(later)
            self._composed[level] = pa.array(both)
        return self._composed[level]

    def _count(self, size: int) -> None:
        self.counters.columns += 1
        self.counters.bytes += size


def _bools(mask: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    """Return a mask as an array of one's own."""
    filled = pc.fill_null(mask, False) if mask.null_count else mask
    array: npt.NDArray[np.bool_] = filled.to_numpy(zero_copy_only=False)
    return array
