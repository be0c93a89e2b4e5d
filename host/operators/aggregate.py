# SPDX-License-Identifier: Apache-2.0
"""Aggregation over windows of rows that come in pieces: times, keys, states, results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from host.columns.codes import GrowingCodes, IntegerCodes
from host.columns.kinds import (
    ORDERED,
    ColumnType,
    Kind,
    column_type,
    integer_view,
    row_at,
    shown,
    validity,
)
from host.errors import (
    AcceleratorLimitError,
    DisorderError,
    KeyRangeError,
    NullOrderError,
    UnsupportedTypeError,
    UsageError,
)
from host.operators.panes import (
    COMBINES,
    Cells,
    Combine,
    WindowStates,
    cells_of,
    merge_cells,
    run_begins,
)
from host.query.quantities import Duration
from host.query.queries import BOUNDARIES, Aggregate, AggregateQuery
from host.query.tables import require_column
from host.query.words import Span

__all__ = [
    "AggregateStates",
    "Array",
    "HostWindows",
    "KeyNumbers",
    "MakeWindows",
    "OpenWindows",
    "ROWS",
    "State",
    "TimeColumn",
    "WindowAggregation",
    "narrowed",
    "whole_numbers",
]

# The column of time of an aggregation: its values, its windows and their boundaries.

Int64s = npt.NDArray[np.int64]


class TimeColumn:
    """A column of time, in its own unit.

    Parameters
    ----------
    schema : pa.Schema
    query : AggregateQuery

    Attributes
    ----------
    window, advance, pane : int
        Lengths in units of the column; a pane is the greatest common divisor of the others.
    type : pa.DataType
        Type of the boundaries of windows: that of the column, but int64 for all integers.

    Raises
    ------
    UsageError
        If there is no such column, it is no column of time, or the windows do not suit it.
    """

    def __init__(self, schema: pa.Schema, query: AggregateQuery) -> None:
        found = column_type(schema, query.time, "input")
        if not found.kind.is_order or found.kind in (Kind.BOOLEAN, Kind.TIME):
            raise UnsupportedTypeError(found.column, found.dtype, ORDERED)
        self.name = found.column
        self._column = found
        self.type = pa.int64() if found.kind is Kind.INTEGER else found.dtype
        assert query.advance is not None
        self.window = self._units("window", query.window)
        self.advance = self._units("advance", query.advance)
        self.pane = gcd(self.window, self.advance)

    def read(self, batch: pa.RecordBatch, first_row: int) -> Int64s:
        """Return the times of a batch, whose first row has this number in the whole input.

        Raises
        ------
        NullOrderError, KeyRangeError
            If a time is null, or a window that it is in has a boundary that the type cannot hold.
        """
        column = self._column.read(batch)
        valid = validity(column)
        if valid is not None:
            at = int(np.argmin(valid))
            raise NullOrderError(self.name, first_row + at, row_at(batch, at))
        times = integer_view(column)
        low, high = (int(times.min()), int(times.max())) if len(times) else (0, 0)
        reach = max(self.window, self.advance)
        edge = 1 << (self.type.bit_width - 1)
        least, most = reach - edge, edge - 1 - reach
        if not least < low <= high < most:
            raise KeyRangeError(
                self.name, low if low <= least else high, least + 1, most - 1,
                remedy="use shorter windows or a coarser unit of time",
                of=f"times whose windows begin and end within type {self.type}",
            )  # fmt: skip
        return times.astype(np.int64, copy=False)

    def boundaries(self, windows: Int64s) -> tuple[pa.Array, pa.Array]:
        """Return the left and the right boundaries of windows by their numbers."""
        starts = windows * self.advance
        return self.values(starts), self.values(starts + self.window)

    def values_of(self, times: Sequence[int]) -> list[object]:
        """Return times, in the column's units, as Python values."""
        return [shown(value) for value in self.values(np.array(times, np.int64))]

    def units(self, value: object) -> int:
        """Return a time that is given in the column's type, in its units.

        Raises
        ------
        UsageError
            If it is no value of the column's type.
        """
        try:
            array = pa.array([value], self.type)
            plain = pa.int32() if self.type.bit_width == 32 else pa.int64()
            return int(array.cast(plain)[0].as_py())
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise UsageError(
                f"A time of column {self.name!r} is of type {self.type}, not {value!r}."
            ) from error

    def values(self, times: Int64s) -> pa.Array:
        """Return times, in the column's units, in its type."""
        array = pa.array(times)
        if self._column.kind is Kind.INTEGER:
            return array
        if self.type.bit_width == 32:
            array = array.cast(pa.int32())
        return array.cast(self.type)

    def _units(self, what: str, span: Span) -> int:
        if isinstance(span, Duration) != self._column.kind.is_temporal:
            needed = (
                "a duration, such as 5min" if self._column.kind.is_temporal else "a whole number"
            )
            raise UsageError(
                f"The {what} over column {self.name!r} of type {self.type} must be {needed}, not "
                f"{span}."
            )
        if not isinstance(span, Duration):
            return span
        units, rest = divmod(span.nanoseconds, self._column.tick)
        if rest:
            raise UsageError(
                f"The {what} of {span} is no whole number of the units of column {self.name!r} "
                f"({self.type}, {Duration(self._column.tick)}); choose a multiple of that."
            )
        return units


# Keys of rows as numbers, in batches, and the keys of the numbers again.


class KeyNumbers:
    """Numbers distinct keys from zero, in the order of their first appearance.

    A null is a value like any other here: rows with nulls in the same columns can have one key.
    Floats are grouped as Spark does: all NaNs are one value, and 0.0 and -0.0 are.

    Parameters
    ----------
    schema : pa.Schema
        Columns of the input.
    names : sequence of str
        Columns that make up a key; may be empty, then there is one key.

    Raises
    ------
    UsageError
        If there is no such column, or its values cannot be compared.
    """

    def __init__(self, schema: pa.Schema, names: Sequence[str]) -> None:
        found = [column_type(schema, name, "input") for name in names]
        self._types: list[ColumnType] = [one.whole() if one.is_wide else one for one in found]
        self.schema = pa.schema([schema.field(name) for name in names])
        self._codes = [
            GrowingCodes() if one.kind.is_coded or one.kind is Kind.DECIMAL else IntegerCodes()
            for one in self._types
        ]
        self._numbers: dict[tuple[int, ...], int] = {}  # by codes, if there are several columns
        self._table = np.zeros(0, np.int64)  # by code, if there is one column; -1 is no number
        self._count = 0
        self._rows: list[pa.RecordBatch] = []  # one row for each number
        self._ranks: Int64s | None = None  # of all keys so far, once somebody has asked

    def __len__(self) -> int:
        """Return the number of distinct keys so far."""
        return self._count if self._types else 1

    def of_rows(self, batch: pa.RecordBatch) -> Int64s:
        """Return the number of each row's key."""
        if not self._types:
            return np.zeros(batch.num_rows, np.int64)
        columns = [self._column(at, batch) for at in range(len(self._types))]
        one = len(columns) == 1
        return self._of_codes(columns[0], batch) if one else self._numbered(columns, batch)

    def _column(self, at: int, batch: pa.RecordBatch) -> Int64s:
        """Return the codes of a column of the keys; that of a null is 0."""
        found, codes = self._types[at], self._codes[at]
        values = found.read(batch)
        if isinstance(codes, IntegerCodes):
            code = codes.of_integers(values)
        else:
            code = codes.of_values(values).astype(np.int64)
        valid = validity(values)
        return code + 1 if valid is None else np.where(valid, code + 1, 0)

    def rows(self, numbers: Int64s) -> list[pa.Array]:
        """Return the columns of the keys with these numbers."""
        if not self._types:
            return []
        self._rows = [pa.concat_batches(self._rows)] if len(self._rows) > 1 else self._rows
        if not self._rows:
            return [pa.nulls(0, field.type) for field in self.schema]
        return list(self._rows[0].take(pa.array(numbers)).columns)

    def ranks(self) -> Int64s:
        """Return the place of each number's key among all keys sorted, nulls last."""
        if not self._types or not self._rows:
            return np.zeros(len(self), np.int64)
        if self._ranks is None:
            self._ranks = self._sorted_places()
        return self._ranks

    def _sorted_places(self) -> Int64s:
        columns = [
            column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            for column in self.rows(np.arange(len(self), dtype=np.int64))
        ]
        columns = [getattr(column, "storage", column) for column in columns]
        names = [str(at) for at in range(len(columns))]
        columns = [
            column.cast(pa.float32()) if pa.types.is_float16(column.type) else column
            for column in columns  # Arrow does not sort 16 bits
        ]
        order = pc.sort_indices(
            pa.table(columns, names=names), sort_keys=[(name, "ascending") for name in names]
        )
        places = np.empty(len(self), np.int64)
        places[order.to_numpy()] = np.arange(len(self))
        return places

    def _of_codes(self, codes: Int64s, batch: pa.RecordBatch) -> Int64s:
        """Return the numbers of keys of one column; remember a row of each new one."""
        more = len(self._codes[0]) + 1 - len(self._table)
        self._table = np.concatenate([self._table, np.full(max(more, 0), -1, np.int64)])
        unknown = np.flatnonzero(self._table[codes] < 0)
        if len(unknown):
            fresh, first = np.unique(codes[unknown], return_index=True)
            self._table[fresh] = np.arange(self._count, self._count + len(fresh))
            self._remember(batch, unknown[first])
        return self._table[codes]

    def _remember(self, batch: pa.RecordBatch, rows: Int64s) -> None:
        """Keep the keys of rows, which get the next numbers."""
        keys = batch.select(self.schema.names).take(pa.array(rows))
        columns = [_shown(column) for column in keys.columns]
        self._rows.append(pa.RecordBatch.from_arrays(columns, schema=self.schema))
        self._count += len(rows)
        self._ranks = None

    def _numbered(self, columns: Sequence[Int64s], batch: pa.RecordBatch) -> Int64s:
        """Return the number of each combination of codes; remember a row of each new one."""
        order = np.lexsort(tuple(columns))
        ordered = [column[order] for column in columns]
        begins = run_begins(ordered)
        firsts = np.flatnonzero(begins)
        known = self._numbers
        fresh: list[int] = []
        numbers = np.empty(len(firsts), np.int64)
        parts = zip(*(column[firsts].tolist() for column in ordered), strict=True)
        for at, (row, codes) in enumerate(zip(order[firsts].tolist(), parts, strict=True)):
            if codes not in known:
                known[codes] = self._count + len(fresh)
                fresh.append(row)
            numbers[at] = known[codes]
        if fresh:
            self._remember(batch, np.array(fresh, np.int64))
        result = np.empty(len(order), np.int64)
        result[order] = numbers[np.cumsum(begins) - 1]
        return result


def _shown(column: pa.Array) -> pa.Array:
    """Return values as results show them: -0.0 as 0.0, whichever of the two came first."""
    if not pa.types.is_floating(column.type):
        return column
    if pa.types.is_float16(column.type):  # which Arrow does not add
        return pc.add(column.cast(pa.float32()), pa.scalar(0, pa.float32())).cast(column.type)
    return pc.add(column, pa.scalar(0, column.type))


# The states of windows that the aggregates of a query need, and their values in the end.
#
# Nulls do not count: each column has the number of its values beside what is computed of them,
# once it has had a null. Sums of integers are exact; those that 64 bits cannot hold are refused,
# unless they are parts of others.

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


# The states of windows that have not ended: the contract of who keeps them, and the host.


class OpenWindows(Protocol):
    """Rows go in by key and pane; states of windows come out when the windows have ended."""

    def __len__(self) -> int:
        """Return the number of states or rows that are kept in the host's memory."""

    def add(self, keys: Int64s, panes: Int64s, values: list[Array], floor: int | None) -> None:
        """Take rows.

        Parameters
        ----------
        keys, panes : array of int64
            Number of each row's key, and of its pane.
        values : list of array
            What the rows contribute to each state.
        floor : int or None
            No later row is in a pane below this one; None if nothing is known.
        """

    def ended(self, ranks: Int64s, first: int | None, last: int | None) -> WindowStates:
        """Return the states of windows that have ended, sorted by window and rank of the key.

        Parameters
        ----------
        ranks : array of int64
            Place of each key among all of them.
        first, last : int or None
            Numbers of the windows; None for those of the first and the last row. Windows up to
            ``last`` are not asked for again.
        """


#: Makes the open windows of an aggregation from its column of time and its states.
MakeWindows: TypeAlias = Callable[[TimeColumn, AggregateStates], OpenWindows]


class HostWindows:
    """The states of keys in panes, and only of panes that a window to come still holds.

    Parameters
    ----------
    time : TimeColumn
    values : AggregateStates
    """

    def __init__(self, time: TimeColumn, values: AggregateStates) -> None:
        self._length, self._advance = time.window // time.pane, time.advance // time.pane
        self._values = values
        self._cells = Cells.none(len(values.states))

    def __len__(self) -> int:
        """Return the number of states."""
        return len(self._cells)

    def add(self, keys: Int64s, panes: Int64s, values: list[Array], floor: int | None) -> None:
        """See :meth:`OpenWindows.add`."""
        del floor
        combines = self._values.combines
        self._cells = merge_cells(self._cells, cells_of(keys, panes, values, combines), combines)

    def ended(self, ranks: Int64s, first: int | None, last: int | None) -> WindowStates:
        """See :meth:`OpenWindows.ended`."""
        # Keys are renumbered by their order, so that results come sorted: there are many more
        # results than cells.
        order = np.argsort(ranks[self._cells.key], kind="stable")
        cells = Cells(
            ranks[self._cells.key][order],
            self._cells.pane[order],
            tuple(states[order] for states in self._cells.states),
        )
        found = cells.windows(
            self._length, self._advance, self._values.combines, first=first, last=last
        )
        if last is None:
            self._cells = Cells.none(len(self._values.states))
        else:
            self._cells = self._cells.after((last + 1) * self._advance)
        return WindowStates(found.window, np.argsort(ranks)[found.key], found.states)


# Aggregation over windows of rows that come in pieces: results leave as windows end.


class WindowAggregation:
    """An aggregation whose rows come in pieces.

    Results come in the order of (window, key), keys ascending and nulls last. Their columns are the
    boundaries of the window, the keys, and the aggregates.

    Parameters
    ----------
    schema : pa.Schema
        Columns of the input.
    query : AggregateQuery
        The aggregation.
    windows : MakeWindows
        Makes what keeps the states of windows that have not ended; by default, the host does.

    Attributes
    ----------
    schema : pa.Schema
        Columns of the results.
    rows, results : int
        Rows that have come, and results that have left.
    late_rows : int
        Rows that were left out, because all their windows had ended.
    held : int
        Number of states (on a device: of rows that it has not got yet) that the host keeps, which
        is what memory grows with.

    Raises
    ------
    UsageError
        If the query does not suit the columns.
    """

    def __init__(
        self, schema: pa.Schema, query: AggregateQuery, windows: MakeWindows = HostWindows
    ) -> None:
        self.query = query
        self._time = TimeColumn(schema, query)
        self._keys = KeyNumbers(schema, query.on)
        self._values = AggregateStates(schema, query.aggregates, parts=query.parts)
        self.schema = pa.schema(
            [(name, self._time.type) for name in BOUNDARIES]
            + [(field.name, field.type) for field in self._keys.schema]
            + list(self._values.schema)
        )
        self._open = windows(self._time, self._values)
        self._done: int | None = None  # number of the last window that has ended
        self._last: int | None = None
        self.rows = self.results = self.late_rows = 0

    @property
    def held(self) -> int:
        """Number of states or rows that the host keeps."""
        return len(self._open)

    def rows_in_order(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Take the next rows, which are sorted by time; return results of windows that they end.

        Raises
        ------
        DisorderError
            If a time is less than the one before it.
        """
        times = self._time.read(batch, self.rows)
        if not len(times):
            return self._results(None)
        before = times[0] if self._last is None else self._last
        falls = np.flatnonzero(times < np.concatenate([[before], times[:-1]]))
        if len(falls):
            at = int(falls[0])
            earlier = before if at == 0 else times[at - 1]
            raise DisorderError(
                self.query.time, self.rows + at, self._shown(earlier), self._shown(times[at])
            )
        self._last = int(times[-1])
        self._add(batch, times, floor=self._last // self._time.pane)
        return self._until(self._last)

    def rows_until(self, batch: pa.RecordBatch, time: object) -> pa.RecordBatch:
        """Take more rows in any order; return results of the windows that a watermark ends.

        No row that comes later should have a time less than ``time``, a value of the column of time
        and the watermark; one that has is left out of windows that have ended.
        """
        self._add(batch, self._time.read(batch, self.rows))
        return self._until(self._time.units(time))

    def more_rows(self, batch: pa.RecordBatch) -> None:
        """Take more rows in any order, without a watermark."""
        self._add(batch, self._time.read(batch, self.rows))

    def last_rows(self, batch: pa.RecordBatch | None = None) -> pa.RecordBatch:
        """Take the last rows; return the results of all windows that are left."""
        if batch is not None:
            self._add(batch, self._time.read(batch, self.rows))
        return self._results(self._windows(None))

    def _add(self, batch: pa.RecordBatch, times: Int64s, floor: int | None = None) -> None:
        """Add rows with these times to the states."""
        self.rows += batch.num_rows
        if not len(times):
            return
        keys, values = self._keys.of_rows(batch), self._values.of_rows(batch)
        panes = times // self._time.pane
        if self._done is not None:
            open_ = times // self._time.advance > self._done
            self.late_rows += int(np.count_nonzero(~open_))
            if not open_.all():
                keys, panes, values = keys[open_], panes[open_], [at[open_] for at in values]
        self._open.add(keys, panes, values, floor)

    def _until(self, watermark: int) -> pa.RecordBatch:
        """Return the results of the windows that end at or before a time; forget what is done."""
        last = (watermark - self._time.window) // self._time.advance
        if self._done is not None and last <= self._done:
            return self._results(None)
        found = self._windows(last)
        self._done = last
        return self._results(found)

    def _windows(self, last: int | None) -> WindowStates:
        first = None if self._done is None else self._done + 1
        return self._open.ended(self._keys.ranks(), first, last)

    def _results(self, found: WindowStates | None) -> pa.RecordBatch:
        if found is None or not len(found.window):
            # Not from lists: Arrow makes no dictionaries of decimals out of these.
            nothing = [pa.nulls(0, kind) for kind in self.schema.types]
            return pa.RecordBatch.from_arrays(nothing, schema=self.schema)
        columns = [
            *self._time.boundaries(found.window),
            *self._keys.rows(found.key),
            *self._values.results(found.states),
        ]
        self.results += len(found.window)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _shown(self, time: int) -> object:
        return self._time.values_of([time])[0]
