# SPDX-License-Identifier: Apache-2.0
"""What an aggregation makes of rows: their times, keys and states; and what it makes of states."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from host.arrays import Array, Int64s, inverse
from host.columns.codes import GrowingCodes, IntegerCodes
from host.columns.kinds import (
    ColumnType,
    Kind,
    column_type,
    integer_view,
    of_units,
    validity,
)
from host.engine.equal_keys import order_by
from host.errors import AcceleratorLimitError, UnsupportedTypeError
from host.operators.panes import COMBINES, Combine
from host.query.quantities import Duration
from host.query.queries import BOUNDARIES, Aggregate, AggregateQuery
from host.query.tables import require_column
from host.query.words import Span

__all__ = [
    "AggregateStates",
    "ExactSums",
    "KeyNumbers",
    "Phases",
    "ROWS",
    "State",
    "narrowed",
]

# Keys of rows as numbers, in batches, and the keys of the numbers again.


class KeyNumbers:
    """Dictionary of distinct keys, numbered from zero as they first appear.

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
        self._pairs = [IntegerCodes() for _ in names[1:]]  # of the columns so far and the next one
        self._table = np.zeros(0, np.int64)  # number of each code; -1 is none
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
        codes = self._column(0, batch)
        for at, pairs in enumerate(self._pairs, 1):
            codes = pairs.of_integers(pa.array(codes << 32 | self._column(at, batch)))
        return self._of_codes(codes, batch)

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
        columns = list(map(_sortable, self.rows(np.arange(len(self), dtype=np.int64))))
        names = [str(at) for at in range(len(columns))]
        if len(columns) == 1 and _is_int64(columns[0]):
            order = order_by(columns[0].to_numpy().astype(np.int64))
        else:
            keys = [(name, "ascending") for name in names]
            order = pc.sort_indices(pa.table(columns, names=names), sort_keys=keys).to_numpy()
        return inverse(order)

    def _of_codes(self, codes: Int64s, batch: pa.RecordBatch) -> Int64s:
        """Return the numbers of keys by their codes; remember a row of each new one."""
        more = len((self._pairs or self._codes)[-1]) + 1 - len(self._table)
        self._table = np.concatenate([self._table, np.full(max(more, 0), -1, np.int64)])
        unknown = np.flatnonzero(self._table[codes] < 0)
        if len(unknown):
            first = np.full(len(self._table), -1, np.int64)
            first[codes[unknown[::-1]]] = unknown[::-1]  # the first row of a code stays
            fresh = np.flatnonzero(first >= 0)
            self._table[fresh] = np.arange(self._count, self._count + len(fresh))
            self._remember(batch, first[fresh])
        return self._table[codes]

    def _remember(self, batch: pa.RecordBatch, rows: Int64s) -> None:
        """Keep the keys of rows, which get the next numbers."""
        keys = batch.select(self.schema.names).take(pa.array(rows))
        columns = [_shown(column) for column in keys.columns]
        self._rows.append(pa.RecordBatch.from_arrays(columns, schema=self.schema))
        self._count += len(rows)
        self._ranks = None


def _sortable(column: pa.Array) -> pa.Array:
    """Return the same values in a type that Arrow sorts."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    column = getattr(column, "storage", column)
    kind = column.type
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return column.cast(pa.decimal128(kind.precision, kind.scale))
    return column


def _is_int64(column: pa.Array) -> bool:
    """Return whether all values of a column are integers of 64 bits with a sign."""
    kind = column.type
    fits = pa.types.is_signed_integer(kind) or (pa.types.is_integer(kind) and kind.bit_width < 64)
    return fits and not column.null_count


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


class ExactSums:
    """Keeps sums exact: values become Python's integers once a sum of all could wrap in 64 bits."""

    def __init__(self) -> None:
        self._largest: dict[str, int] = {}

    def of(self, name: str, values: Array, rows: int) -> Array:
        """Return values to add up, in a type that holds their sum and that of all before.

        Parameters
        ----------
        name : str
            What is summed.
        values : array of int64
        rows : int
            How many values there have been, with these.
        """
        edges = (abs(int(values.min())), abs(int(values.max()))) if len(values) else ()
        self._largest[name] = largest = max(self._largest.get(name, 0), *edges, 0)
        return values.astype(object) if largest * rows > _INT64.max else values


@dataclass(frozen=True)
class _Column:
    name: str
    dtype: pa.DataType
    kind: Kind


class AggregateStates:
    """States kept for each key and pane, and how rows become them.

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
        self._sums = ExactSums()
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
        AcceleratorLimitError
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
        if function == "sum" and values.dtype == np.int64:
            return self._sums.of(name, values, self._rows)
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
        # A value at the place of a null is meaningless, and need not fit.
        safe, dtype = not array.null_count, self._columns[one.column].dtype
        return array if one.function == "sum" else of_units(array, dtype, safe=safe)

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
    AcceleratorLimitError
        If one is too large.
    """
    if sums.dtype != object:
        return sums
    wrong = [value for value in sums.tolist() if not _INT64.min <= value <= _INT64.max]
    if wrong:
        raise AcceleratorLimitError.out_of_range(
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


# An aggregation in two phases: parts of the rows by panes, then windows of the parts' results.
#
# Every part of the input can be reduced by itself, and only its panes have to meet those of the
# other parts. Both phases are aggregations again, so they have one meaning and one implementation.

#: How the results of panes are combined.
_AGAIN = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}


@dataclass(frozen=True)
class Phases:
    """The two aggregations that an aggregation consists of.

    Parameters
    ----------
    query : AggregateQuery
        The aggregation as a whole.
    """

    query: AggregateQuery

    @property
    def panes(self) -> AggregateQuery:
        """The first phase: windows that do not overlap, as long as a pane."""
        pane = _pane(self.query)
        states = {self.state_column(state): state for state in self._states}
        return AggregateQuery(
            time=self.query.time, window=pane, on=self.query.on, aggregates=states, parts=True
        )

    @property
    def windows(self) -> AggregateQuery:
        """The second phase, whose input is the result of the first one, of all parts."""
        again = {
            self.state_column(state): Aggregate(_AGAIN[state.function], self.state_column(state))
            for state in self._states
        }
        return AggregateQuery(
            time=BOUNDARIES[0],
            window=self.query.window,
            advance=self.query.advance,
            on=self.query.on,
            aggregates=again,
            parts=True,
        )

    def finished(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """Return the results of the aggregation as a whole, from those of the second phase."""
        kept = len(BOUNDARIES) + len(self.query.on)
        columns = [*batch.columns[:kept]]
        for name, one in self.query.aggregates.items():
            column = batch.column(self.state_column(_state_of(one)))
            if one.function == "mean":
                counts = batch.column(self.state_column(Aggregate("count", one.column)))
                divisors = np.maximum(_plain(counts).astype(np.float64), 1)
                column = _nulls_of(_plain(column).astype(np.float64) / divisors, column)
            elif one.function in ("sum", "count"):
                column = _nulls_of(narrowed(_plain(column), name), column)
            columns.append(column.cast(schema.field(name).type))
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def state_column(self, state: Aggregate) -> str:
        """Return the column of a state in results of the first phase; no key is called like it.

        Parameters
        ----------
        state : Aggregate
            A count, a sum, a least or a greatest value that an aggregate of the query needs; a mean
            needs the sum and the count of its column.
        """
        name = f"state{self._states.index(state)}"
        while name in self.query.on:
            name = f"_{name}"
        return name

    @property
    def _states(self) -> list[Aggregate]:
        found: list[Aggregate] = []
        for one in self.query.aggregates.values():
            found.append(_state_of(one))
            if one.function == "mean":
                found.append(Aggregate("count", one.column))
        return list(dict.fromkeys(found))


def _state_of(one: Aggregate) -> Aggregate:
    return Aggregate("sum", one.column) if one.function == "mean" else one


def _pane(query: AggregateQuery) -> Span:
    window, advance = query.window, query.advance
    if isinstance(window, Duration) and isinstance(advance, Duration):
        return Duration(gcd(window.nanoseconds, advance.nanoseconds))
    assert isinstance(window, int)
    assert isinstance(advance, int)
    return gcd(window, advance)


def _plain(column: pa.Array) -> Array:
    """Return numbers, whose sums are wide decimals; nulls become zero."""
    if pa.types.is_decimal(column.type):
        return whole_numbers(column)
    values: Array = column.fill_null(0).to_numpy(zero_copy_only=False)
    return values


def _nulls_of(values: Array, like: pa.Array) -> pa.Array:
    """Return values with the nulls of another array."""
    mask: Array = like.is_null().to_numpy(zero_copy_only=False)
    return pa.array(values, mask=mask if mask.any() else None)
