# SPDX-License-Identifier: Apache-2.0
"""The states of windows that the aggregates of a query need, and their values in the end.

Nulls do not count: each column has the number of its values beside what is computed of them, once
it has had a null. Sums of integers are exact; those that 64 bits cannot hold are refused, unless
they are parts of others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.encode.kinds import Kind, column_type, integer_view, validity
from host.errors import AcceleratorLimitError, KeyRangeError, UnsupportedTypeError
from host.query.aggregate_query import Aggregate
from host.query.column_names import require_column
from host.windowed.panes import COMBINES, Combine

__all__ = ["ROWS", "AggregateStates", "Array", "State", "narrowed", "whole_numbers"]

Array: TypeAlias = npt.NDArray[Any]
#: A state: a function and a column, ``("count", None)`` for the number of rows.
State: TypeAlias = tuple[str, str | None]

#: The number of rows, which every query keeps.
ROWS: State = ("count", None)
#: Functions whose results depend on the number of values.
_COUNTED = ("count", "mean")
_INT64 = np.iinfo(np.int64)
#: Kinds of which sums and means are computed.
_NUMBERS = (Kind.INTEGER, Kind.FLOAT)
#: Type of parts of sums of integers. It holds the sum of 2**63 numbers of 64 bits.
_PART = pa.decimal128(38, 0)


@dataclass(frozen=True)
class _Column:
    name: str
    dtype: pa.DataType
    kind: Kind


class AggregateStates:
    """What is kept for each key and pane, and how rows become it.

    Parameters
    ----------
    schema : pa.Schema
        Columns of the input.
    aggregates : mapping of str to Aggregate
        What is computed, by the name of its column.
    parts : bool
        Whether results are parts of those of more rows: sums of integers are then decimals that
        hold them, however large they are, and sums of such decimals can be asked for.

    Attributes
    ----------
    schema : pa.Schema
        Columns of the aggregates in a result.
    states : list of (str, str or None)
        The states; a function and a column each, :data:`ROWS` first.

    Raises
    ------
    UsageError
        If there is no such column, or an aggregate cannot be computed of its type.
    """

    def __init__(
        self, schema: pa.Schema, aggregates: Mapping[str, Aggregate], *, parts: bool = False
    ) -> None:
        self._aggregates = dict(aggregates)
        self._parts = parts
        names = dict.fromkeys(one.column for one in aggregates.values() if one.column is not None)
        self._columns = {name: _aggregated(schema, name, aggregates, parts=parts) for name in names}
        self.states = list(dict.fromkeys([ROWS, *self._needed()]))
        self._largest = dict.fromkeys(self._columns, 0)
        self._rows = 0
        self.schema = pa.schema(
            [(name, self._type(aggregate)) for name, aggregate in aggregates.items()]
        )

    @property
    def combines(self) -> list[Combine]:
        """How each state is combined."""
        return [self._combine(function, column) for function, column in self.states]

    @property
    def shown_counts(self) -> set[State]:
        """Counts that results depend on, beside whether they are zero."""
        shown = {one.column for one in self._aggregates.values() if one.function in _COUNTED}
        return {("count", column) for column in shown}

    def is_float(self, column: str) -> bool:
        """Return whether floats are aggregated."""
        return self._columns[column].kind is Kind.FLOAT

    def integers(self, batch: pa.RecordBatch, name: str) -> tuple[Array, Array | None]:
        """Return the values of a column, and which are not null (None if none is).

        Values of a column that is only counted are zero.

        Raises
        ------
        AcceleratorLimitError
            If they are floats, which an accelerator does not add up exactly, or exceed int64.
        """
        self.require_integers(name)
        values, valid = self._read(batch, self._columns[name])
        if values.dtype == np.uint64:
            if len(values) and int(values.max()) > _INT64.max:
                raise AcceleratorLimitError(
                    f"Column {name!r} holds {int(values.max())}, but the accelerator reduces "
                    f"integers of up to {_INT64.max}",
                    "aggregate on 'software:'",
                )
            values = values.astype(np.int64)
        return values, valid

    def require_integers(self, name: str) -> None:
        """Raise if values of a column are floats; raises like :meth:`integers`."""
        if self.is_float(name):
            raise AcceleratorLimitError(
                f"Column {name!r} holds floats, but the accelerator adds up integers",
                "cast it to integers, count it only, or aggregate on 'software:'",
            )

    def of_rows(self, batch: pa.RecordBatch) -> list[Array]:
        """Return what each row contributes to each state."""
        self._rows += batch.num_rows
        given = {name: self._read(batch, column) for name, column in self._columns.items()}
        return [self._contribution(state, given, batch.num_rows) for state in self.states]

    def results(self, states: Sequence[Array]) -> list[pa.Array]:
        """Return the columns of the aggregates of windows with these states.

        Raises
        ------
        KeyRangeError
            If a sum does not fit 64 bits.
        """
        known = dict(zip(self.states, states, strict=True))
        return [self._result(one, name, known) for name, one in self._aggregates.items()]

    def _needed(self) -> list[State]:
        found: list[State] = []
        for one in self._aggregates.values():
            if one.column is not None:
                found.append(("count", one.column))
                if one.function != "count":
                    found.append(("sum" if one.function == "mean" else one.function, one.column))
        return found

    def _combine(self, function: str, column: str | None) -> Combine:
        if function == "min" and column is not None and self._columns[column].kind is Kind.FLOAT:
            return np.fmin  # NaN is the greatest number, as in Spark and in Arrow's order
        return COMBINES[function]

    def _read(self, batch: pa.RecordBatch, column: _Column) -> tuple[Array, Array | None]:
        """Return the values of a column, and which are not null (None if none is).

        They are float64, uint64 or int64, whichever the type of the column needs.
        """
        array = batch.column(column.name)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        valid = validity(array)
        if column.kind is Kind.FLOAT:
            return array.cast(pa.float64()).to_numpy(zero_copy_only=False), valid
        if column.kind not in (Kind.INTEGER, Kind.BOOLEAN) and not column.kind.is_temporal:
            return np.zeros(len(array), np.int64), valid  # its values are only counted
        if array.type == _PART:
            return whole_numbers(array), valid
        values = integer_view(array)
        values = values if valid is None else np.where(valid, values, values.dtype.type(0))
        if values.dtype != np.uint64:
            values = values.astype(np.int64, copy=False)
        return values, valid

    def _contribution(
        self, state: State, given: Mapping[str, tuple[Array, Array | None]], rows: int
    ) -> Array:
        function, name = state
        if name is None:
            return np.ones(rows, np.int64)
        values, valid = given[name]
        if function == "count":
            return np.ones(rows, np.int64) if valid is None else valid.astype(np.int64)
        if valid is not None:
            values = np.where(valid, values, _neutral(function, values.dtype))
        if function == "sum" and values.dtype == np.uint64:
            fits = not rows or int(values.max()) <= _INT64.max
            values = values.astype(np.int64 if fits else object)
        if function == "sum" and values.dtype == np.int64 and rows:
            edges = abs(int(values.min())), abs(int(values.max()))
            self._largest[name] = max(self._largest[name], *edges)
            if self._largest[name] * self._rows > _INT64.max:
                return values.astype(object)  # a sum of all could wrap in 64 bits
        return values

    def _result(self, one: Aggregate, name: str, known: Mapping[State, Array]) -> pa.Array:
        counts = known["count", one.column]
        if one.function == "count":
            return pa.array(counts)
        values = known["sum" if one.function == "mean" else one.function, one.column]
        empty = counts == 0
        mask = empty if empty.any() else None
        if one.function == "mean":
            means = np.divide(values.astype(np.float64), np.maximum(counts, 1))
            return pa.array(means, mask=mask)
        assert one.column is not None
        if one.function == "sum" and self._type(one) == _PART:
            if values.dtype == object:
                return pa.array(values, _PART, mask=mask)
            return pa.array(values, mask=mask).cast(_PART)
        array = pa.array(narrowed(values, name), mask=mask)
        return array if one.function == "sum" else _typed(array, self._columns[one.column])

    def _type(self, one: Aggregate) -> pa.DataType:
        if one.function == "count" or one.column is None:
            return pa.int64()
        column = self._columns[one.column]
        if one.function == "mean":
            return pa.float64()
        if one.function == "sum":
            whole = _PART if self._parts else pa.int64()
            return pa.float64() if column.kind is Kind.FLOAT else whole
        return column.dtype


def whole_numbers(array: pa.Array) -> Array:
    """Return decimals without fraction as int64, or as Python's integers if one is too large.

    Nulls become zero.
    """
    if not len(array):
        return np.zeros(0, np.int64)
    known = array.fill_null(0)
    words = np.frombuffer(known.buffers()[1], np.int64)[2 * known.offset :][: 2 * len(known)]
    low, high = words[0::2], words[1::2]
    if np.array_equal(high, low >> np.int64(63)):
        return low
    return high.astype(object) * (1 << 64) + low.view(np.uint64).astype(object)


def narrowed(sums: Array, name: str) -> Array:
    """Return sums as 64 bits hold them; ``name`` is that of the aggregate.

    Raises
    ------
    KeyRangeError
        If one is too large.
    """
    if sums.dtype != object:
        return sums
    wrong = [value for value in sums.tolist() if not _INT64.min <= value <= _INT64.max]
    if wrong:
        raise KeyRangeError(
            name,
            wrong[0],
            _INT64.min,
            _INT64.max,
            remedy="sum fewer rows, or ask for the mean, which is floating point",
        )
    return sums.astype(np.int64)


def _aggregated(
    schema: pa.Schema, name: str, aggregates: Mapping[str, Aggregate], *, parts: bool
) -> _Column:
    """Return the column to aggregate, if its type suits all that is computed of it."""
    require_column(schema.names, name, "the input table")
    functions = {one.function for one in aggregates.values() if one.column == name}
    if functions == {"count"}:
        return _Column(name, schema.field(name).type, Kind.TEXT)
    found = column_type(schema, name, "input")
    if parts and found.dtype == _PART and functions == {"sum"}:
        return _Column(name, found.dtype, Kind.INTEGER)
    sums = bool(functions & {"sum", "mean"})
    if sums and found.kind not in _NUMBERS:
        raise UnsupportedTypeError(name, found.dtype, "integers, floats (for a sum or a mean)")
    if (found.kind.is_coded and found.kind is not Kind.FLOAT) or found.kind is Kind.DECIMAL:
        raise UnsupportedTypeError(
            name, found.dtype, "integers, floats, booleans, dates, times (for min or max)"
        )
    return _Column(name, found.dtype, found.kind)


def _neutral(function: str, dtype: np.dtype[Any]) -> Any:
    """Return what a null contributes, which changes no state that has a value."""
    if function == "sum":
        return dtype.type(0)
    if dtype == np.float64:
        return np.nan if function == "min" else -np.inf
    limits = np.iinfo(dtype)
    return limits.max if function == "min" else limits.min


def _typed(array: pa.Array, column: _Column) -> pa.Array:
    """Return values in the type of their column."""
    if column.kind.is_temporal and column.dtype.bit_width == 32:
        array = array.cast(pa.int32())
    # A value at the place of a null is meaningless, and need not fit.
    return array.cast(column.dtype, safe=not array.null_count)
