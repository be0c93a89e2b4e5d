# SPDX-License-Identifier: Apache-2.0
"""The Arrow types that can be compared, their columns as 64-bit integers, and their ranges."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import gcd
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from host.arrays import Array, Bools, Float64s, Int64s
from host.errors import AcceleratorLimitError, UnsupportedTypeError, UsageError
from host.query.quantities import Duration
from host.query.tables import require_column
from host.query.words import Bound

__all__ = [
    "ColumnRange",
    "ColumnType",
    "DECIMAL_DIGITS",
    "Kind",
    "ORDERED",
    "Ranges",
    "SUPPORTED",
    "SeenRange",
    "Span",
    "bound_in_ticks",
    "coded_difference",
    "common_tick",
    "require_same_kind",
    "canonical_binary",
    "canonical_bits",
    "canonical_float",
    "column_type",
    "contiguous",
    "doubles",
    "integer_view",
    "of_units",
    "one_batch",
    "outside",
    "row_at",
    "seen_ranges",
    "shown",
    "span_of",
    "units_of",
    "unscaled",
    "validity",
]

# Convert arrays whose values are not compared bit by bit into a form that is.


#: Decimals are measured in units of ten to the power of minus this number, and have no more digits
#: behind the point.
DECIMAL_DIGITS = 76


def canonical_binary(array: pa.Array) -> pa.Array:
    """Return binary values of any layout as ``large_binary``."""
    if pa.types.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    return array.cast(pa.large_binary())


def canonical_float(array: pa.Array) -> pa.Array:
    """Return floating-point numbers as int64 that are equal where SQL treats the numbers as equal.

    All NaN are equal to each other, and -0.0 is equal to 0.0. Nulls are kept.
    """
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(canonical_bits(doubles(array)), mask=None if valid.all() else ~valid)


def doubles(array: pa.Array) -> Float64s:
    """Return floating-point numbers as doubles; nulls become NaN."""
    values: Float64s = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values


def canonical_bits(values: Float64s) -> Int64s:
    """Return the bits of doubles, with the same bits for all NaN, and with -0.0 as 0.0."""
    canonical = values + 0.0  # turns -0.0 into 0.0
    canonical[np.isnan(canonical)] = np.nan
    bits: Int64s = canonical.view(np.int64)
    return bits


def unscaled(array: pa.Array, name: str) -> pa.Array:
    """Return decimals as int64, in units of their last digit; nulls are kept.

    Raises
    ------
    AcceleratorLimitError
        If a decimal in these units does not fit in 64 bits.
    """
    kind, data = array.type, array.buffers()[1]
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    mask = None if valid.all() else ~valid
    if data is None or not len(array):
        return pa.array(np.zeros(len(array), np.int64), mask=mask)
    size = kind.byte_width
    wide, count = (np.int32, 1) if size == 4 else (np.int64, size // 8)
    words = np.frombuffer(data, wide, len(array) * count, array.offset * size).reshape(-1, count)
    low = words[:, 0].astype(np.int64)
    beyond = valid & (low >> np.int64(63) != words[:, 1:].T).any(axis=0)
    if beyond.any():
        value = array[int(np.argmax(beyond))].as_py()
        limit = (1 << 63) - 1
        raise AcceleratorLimitError.out_of_range(
            name,
            f"{value} (in units of 1e{-kind.scale}, of which 64 bits must hold the number)",
            -limit,
            limit,
            remedy="cast the column to fewer digits",
        )
    return pa.array(low, mask=mask)


# Turn a table's column into one array.


def contiguous(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, copied only if the column has several chunks."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    if not column.num_chunks:
        return pa.nulls(0, column.type)  # combining makes no array of all types
    # Large columns may stay chunked even after combining, because of the width of their offsets.
    array = column.combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def one_batch(rows: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    """Return rows as one batch."""
    columns = [contiguous(column) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


# The Arrow types that can be compared, and their columns as 64-bit integers.

#: Supported types, for messages.
SUPPORTED = (
    "int8 to int64, uint8 to uint64, bool, date32, date64, timestamp, time, duration, decimal, "
    "float, string, binary, uuid"
)
#: Types that give an order, for messages.
ORDERED = SUPPORTED.partition(", decimal")[0]

NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
DAY = 86_400_000_000_000

_NARROW_DIGITS = 18
"""Digits of a decimal that 64 bits always hold."""


class Kind(Enum):
    """Kind of measure of a column. Only columns of the same kind can be compared."""

    INTEGER = "integer"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp without zone"
    INSTANT = "timestamp with zone"
    TIME = "time of day"
    DURATION = "duration"
    DECIMAL = "decimal"
    WIDE_DECIMAL = "decimal of many digits"
    FLOAT = "floating point"
    TEXT = "string"
    BINARY = "binary"

    @property
    def is_temporal(self) -> bool:
        """Whether differences of this kind are durations."""
        return self in (Kind.DATE, Kind.TIMESTAMP, Kind.INSTANT, Kind.TIME, Kind.DURATION)

    @property
    def is_coded(self) -> bool:
        """Whether values are compared as codes, for equality only."""
        return self in (Kind.FLOAT, Kind.TEXT, Kind.BINARY, Kind.WIDE_DECIMAL)

    @property
    def is_order(self) -> bool:
        """Whether a column of this kind can give the order of arrival."""
        return not self.is_coded and self is not Kind.DECIMAL

    @property
    def plural(self) -> str:
        """Plural name of values of this kind, for messages."""
        return {
            Kind.FLOAT: "floating-point numbers",
            Kind.TEXT: "strings",
            Kind.BINARY: "binary values",
            Kind.WIDE_DECIMAL: "decimals of many digits",
        }.get(self, f"values of kind {self.value}")


@dataclass(frozen=True)
class ColumnType:
    """Properties of a column that are known without its rows.

    Parameters
    ----------
    name : str
        Table and column, for messages.
    column : str
        The column's name in its table.
    dtype : DataType
        Type of the values, decoded if they are dictionary-encoded.
    kind : Kind
        What the values measure.
    tick : int
        Size of the column's unit: in nanoseconds for a temporal kind, in ``10 ** -76`` for a
        decimal, else one.
    """

    name: str
    column: str
    dtype: pa.DataType
    kind: Kind
    tick: int

    def read(self, batch: pa.RecordBatch) -> pa.Array:
        """Return this column of ``batch`` in the form in which it is compared."""
        return self.comparable(batch.column(self.column))

    def comparable(self, array: pa.Array) -> pa.Array:
        """Return ``array`` in the form in which its values are compared, for example decoded."""
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if self.kind is Kind.TEXT:
            return array.cast(pa.large_string())
        if self.kind is Kind.BINARY:
            return canonical_binary(array)
        if self.kind is Kind.FLOAT:
            return canonical_float(array)
        if self.kind is Kind.INSTANT:
            # An instant does not depend on its zone, which may be one that Python does not know.
            return array.cast(pa.timestamp(self.dtype.unit, "UTC"))
        if self.kind is Kind.WIDE_DECIMAL:
            return array.cast(self.dtype)
        return unscaled(array, self.name) if self.kind is Kind.DECIMAL else array

    @property
    def is_wide(self) -> bool:
        """Whether it is a column of decimals that 64 bits cannot always hold."""
        return self.kind is Kind.DECIMAL and int(self.dtype.precision) > _NARROW_DIGITS

    def whole(self, dtype: pa.DataType | None = None) -> "ColumnType":
        """Return a column of decimals as one whose values are compared as codes.

        Parameters
        ----------
        dtype : DataType, optional
            Type of decimals in which they are compared; by default, their own.
        """
        return replace(self, dtype=dtype or self.dtype, kind=Kind.WIDE_DECIMAL, tick=1)

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest value of the type; not defined for coded kinds."""
        if self.kind is Kind.BOOLEAN:
            return 0, 1
        if self.kind is Kind.DECIMAL:
            most = min(10**self.dtype.precision - 1, (1 << 63) - 1)
            return -most, most
        bits = self.dtype.bit_width
        if pa.types.is_unsigned_integer(self.dtype):
            return 0, (1 << bits) - 1
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def column_type(schema: pa.Schema, name: str, side: str) -> ColumnType:
    """Return the type of column ``name`` in a table that messages call ``side``.

    Raises
    ------
    UsageError
        If there is no column of that name, or there are several.
    UnsupportedTypeError
        If the type of the column cannot be compared.
    """
    require_column(schema.names, name, f"the {side} table")
    dtype = schema.field(name).type
    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    label = f"{side}.{name}"
    kind, tick = _kind(dtype, label)
    return ColumnType(label, name, dtype, kind, tick)


def shown(value: pa.Scalar) -> object:
    """Return a value for messages: Python's own, or text for a time that Python does not have.

    Instants are in UTC, as their zone may be one that Python does not know.
    """
    kind = value.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        value = value.cast(pa.timestamp(kind.unit, "UTC"))
    try:
        found: object = value.as_py()
    except (OverflowError, ValueError):
        unit = getattr(kind, "unit", "days")
        return f"{value.cast(pa.int64() if kind.bit_width == 64 else pa.int32())} {unit}"
    return found


def of_units(numbers: pa.Array, dtype: pa.DataType, *, safe: bool = True) -> pa.Array:
    """Return integers of 64 bits, in the units of a type, in that type."""
    if pa.types.is_temporal(dtype) and dtype.bit_width == 32:
        numbers = numbers.cast(pa.int32(), safe=safe)
    return numbers.cast(dtype, safe=safe)


def units_of(value: object, name: str, dtype: pa.DataType) -> int:
    """Return a time that is given for a column, in the units of the column's type.

    Raises
    ------
    UsageError
        If it is no value of the type.
    """
    try:
        array = pa.array([value], dtype)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise UsageError(
            f"A time of column {name} is of type {dtype}, not {value!r}; give a value of that type."
        ) from error
    if array.null_count:
        raise UsageError(f"A time of column {name} cannot be null; give a value.")
    return int(integer_view(array)[0])


def row_at(rows: pa.Table | pa.RecordBatch, number: int) -> dict[str, object]:
    """Return one row as a dict by column names, for messages."""
    return {
        name: shown(column[number])
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
    }


def integer_view(array: pa.Array) -> Array:
    """Return the values of an integer or temporal array as a view of its buffer.

    Booleans, which are bits in Arrow, become bytes. The value at the place of a null is undefined.
    """
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    size = array.type.bit_width // 8
    dtype = np.dtype(f"{'u' if pa.types.is_unsigned_integer(array.type) else 'i'}{size}")
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), dtype)
    return np.frombuffer(data, dtype, len(array), array.offset * size)


def validity(array: pa.Array) -> Bools | None:
    """Return whether each value of ``array`` is not null; None if none is null."""
    if not array.null_count:
        return None
    mask: Bools = array.is_valid().to_numpy(zero_copy_only=False)
    return mask


def _kind(dtype: pa.DataType, label: str) -> tuple[Kind, int]:
    types = pa.types
    if types.is_integer(dtype):
        return Kind.INTEGER, 1
    if types.is_boolean(dtype):
        return Kind.BOOLEAN, 1
    if types.is_date(dtype):
        return Kind.DATE, DAY if types.is_date32(dtype) else NANOSECONDS["ms"]
    if types.is_timestamp(dtype):
        return (Kind.TIMESTAMP if dtype.tz is None else Kind.INSTANT), NANOSECONDS[dtype.unit]
    if types.is_time(dtype):
        return Kind.TIME, NANOSECONDS[dtype.unit]
    if types.is_duration(dtype):
        return Kind.DURATION, NANOSECONDS[dtype.unit]
    if types.is_decimal(dtype) and dtype.scale <= DECIMAL_DIGITS:
        return Kind.DECIMAL, 10 ** (DECIMAL_DIGITS - dtype.scale)
    if types.is_floating(dtype):
        return Kind.FLOAT, 1
    if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
        return Kind.TEXT, 1
    binary = (
        types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary,
    )  # fmt: skip
    # Of Arrow's extensions, the bytes of a UUID mean the same as its value.
    is_uuid = isinstance(dtype, pa.BaseExtensionType) and dtype.extension_name == "arrow.uuid"
    if is_uuid or any(test(dtype) for test in binary):
        return Kind.BINARY, 1
    if types.is_null(dtype):
        raise UnsupportedTypeError(label, None)
    raise UnsupportedTypeError(label, dtype, SUPPORTED)


# Ranges of a column's values that are known before the values arrive.


class ColumnRange(NamedTuple):
    """All values lie between ``low`` and ``high``, a whole number of steps from ``low``.

    Attributes
    ----------
    low, high : int, date, datetime, …
        Limits as integers in the column's unit, or as Python values of its type.
        None if there is no value.
    step : int
        Step in the column's unit; zero if there is one value at most.
    """

    low: Any
    high: Any
    step: int = 1


#: Ranges of some columns of one table, as ``ColumnRange`` or as ``(low, high)``.
Ranges: TypeAlias = Mapping[str, Sequence[Any]]

#: Values that are looked at first for a common step.
_SAMPLE = 256


class SeenRange:
    """The range of a column's values, from batches of them.

    Parameters
    ----------
    column : ColumnType
        The column, of a kind that is not coded.
    """

    def __init__(self, column: ColumnType) -> None:
        self._column = column
        self._low: int | None = None
        self._high: int | None = None
        self._step = 0

    def see(self, batch: pa.RecordBatch) -> None:
        """Look at the next values."""
        array = self._column.read(batch)
        valid, values = validity(array), integer_view(array)
        values = values if valid is None else values[valid]
        if not len(values):
            return
        low, high = int(values.min()), int(values.max())
        if self._low is None or self._high is None:
            self._low, self._high = low, high
        first, self._low, self._high = self._low, min(self._low, low), max(self._high, high)
        for part in (values[:_SAMPLE], values):  # few values often tell that there is no step
            if self._step != 1:
                away = part.astype(np.uint64) - np.uint64(low % (1 << 64))
                self._step = gcd(self._step, low - first, int(np.gcd.reduce(away)))

    @property
    def range(self) -> ColumnRange:
        """The range of all values."""
        return ColumnRange(self._low, self._high, self._step)


def seen_ranges(
    columns: Iterable[ColumnType], batches: Callable[[list[str]], Iterable[pa.RecordBatch]]
) -> dict[str, ColumnRange]:
    """Return the ranges of those columns whose values are numbers or times, by reading these.

    Parameters
    ----------
    columns : iterable of ColumnType
        The columns.
    batches : callable
        Returns the rows with the given columns.
    """
    seen = {
        each.column: SeenRange(each) for each in columns if not (each.kind.is_coded or each.is_wide)
    }
    for batch in batches(list(seen)) if seen else ():
        for each in seen.values():
            each.see(batch)
    return {name: each.range for name, each in seen.items()}


class Span(NamedTuple):
    """Range of the values of a pair of columns, or that of their types, in ticks.

    Attributes
    ----------
    low, high : int
        Smallest and largest value.
    step : int
        A divisor of the difference of any two values; 1 if 64 bits do not hold the differences.
    """

    low: int
    high: int
    step: int


def span_of(
    columns: tuple[ColumnType, ColumnType],
    factors: tuple[int, int],
    ranges: tuple[Ranges, Ranges],
) -> Span:
    """Return the range of the values of both columns together."""
    lows, highs, step, known = [], [], 0, True
    for column, factor, given in zip(columns, factors, ranges, strict=True):
        entry = given.get(column.column)
        known &= entry is not None
        low, high, unit = (*column.limits, 1) if entry is None else ColumnRange(*entry)
        if low is not None:
            lows.append(_ticks(low, column) * factor)
            highs.append(_ticks(high, column) * factor)
            step = gcd(step, unit * factor, lows[-1] - lows[0])
    if not lows:
        return Span(0, 0, 1)
    low, high = min(lows), max(highs)
    # Distances are divided by the step where 64 bits hold them.
    divides = known and high - low < 1 << 64
    return Span(low, high, max(1, step) if divides else 1)


def outside(values: Array, low: int, high: int) -> Bools:
    """Return which ``values``, integers of any type, are not between two integers."""
    info = np.iinfo(values.dtype)
    if low > info.max or high < info.min:
        return np.ones(len(values), np.bool_)
    return (values < max(low, int(info.min))) | (values > min(high, int(info.max)))


def _ticks(value: Any, column: ColumnType) -> int:
    """Return a value of the column's type as an integer in the column's unit."""
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, Decimal):
        return int(Fraction(value) * Fraction(10) ** column.dtype.scale)
    return int(pa.scalar(value, column.dtype).value)


# The common unit of two columns, and bounds of their differences in it.


def require_same_kind(left: ColumnType, right: ColumnType) -> None:
    """Raise unless the values of both columns can be compared."""
    if left.kind is not right.kind:
        raise UsageError(
            f"Column {left.name!r} ({left.dtype}: {left.kind.value}) cannot be compared with "
            f"column {right.name!r} ({right.dtype}: {right.kind.value}); cast one of them."
        )


def common_tick(left: ColumnType, right: ColumnType) -> tuple[int, tuple[int, int]]:
    """Return the common unit of both columns, and how many of it a unit of each column has."""
    tick = gcd(left.tick, right.tick)
    return tick, (left.tick // tick, right.tick // tick)


def coded_difference(column: ColumnType, what: str) -> UsageError:
    """Return the error for a difference of values without differences, such as text."""
    return UsageError(f"{what}: {column.kind.plural} can be compared for equality only.")


def bound_in_ticks(bound: Bound, column: ColumnType, tick: int, what: str) -> Fraction | int | None:
    """Return ``bound`` in ticks of the columns.

    Raises
    ------
    UsageError
        If a number bounds temporal columns, a duration bounds other columns, or a bound of dates
        is not a whole number of days.
    """
    if bound is None:
        return None
    if isinstance(bound, Duration):
        if not column.kind.is_temporal and bound.nanoseconds:
            raise UsageError(
                f"{what} {bound} is a duration, but column {column.name!r} has type "
                f"{column.dtype}; write a plain number."
            )
        if column.kind is Kind.DATE and bound.nanoseconds % DAY:
            raise UsageError(
                f"{what} {bound} is not a whole number of days, but column {column.name!r} has "
                f"type {column.dtype}, and dates lie whole days apart; write whole days, like 1d, "
                f"or cast the column to a timestamp."
            )
        return Fraction(bound.nanoseconds, tick)
    if column.kind.is_temporal and bound:
        raise UsageError(
            f"{what} {bound} is a plain number, but column {column.name!r} has type "
            f"{column.dtype}; write a duration, like {_example(column)}."
        )
    if column.kind.is_coded and column.kind is not Kind.FLOAT and bound:
        raise coded_difference(column, f"{what} {bound}")
    assert isinstance(bound, (int, Fraction))
    return Fraction(bound) * 10**DECIMAL_DIGITS / tick if column.kind is Kind.DECIMAL else bound


def _example(column: ColumnType) -> str:
    """Return an example of a duration for the column, for messages."""
    return "1d" if column.kind is Kind.DATE else "30s or 180min"
