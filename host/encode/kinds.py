# SPDX-License-Identifier: Apache-2.0
"""Which Arrow types can be compared, and their columns as 64-bit integers."""

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.column_names import require_column
from host.encode.canonical import DECIMAL_DIGITS, canonical_binary, canonical_float, unscaled
from host.errors import UnsupportedTypeError, UntypedColumnError

__all__ = [
    "ORDERED",
    "SUPPORTED",
    "Column",
    "ColumnType",
    "Kind",
    "column_type",
    "integer_view",
    "read_column",
    "row_at",
    "validity",
]

#: For messages.
SUPPORTED = (
    "int8 to int64, uint8 to uint64, bool, date32, date64, timestamp, time, duration, decimal, "
    "float, string, binary"
)
#: Types that give an order, for messages.
ORDERED = SUPPORTED.partition(", decimal")[0]

NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
DAY = 86_400_000_000_000


class Kind(Enum):
    """What a column measures; only columns of one kind can be compared."""

    INTEGER = "integer"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp without zone"
    INSTANT = "timestamp with zone"
    TIME = "time of day"
    DURATION = "duration"
    DECIMAL = "decimal"
    FLOAT = "floating point"
    TEXT = "string"
    BINARY = "binary"

    @property
    def is_temporal(self) -> bool:
        """Whether differences are durations."""
        return self in (Kind.DATE, Kind.TIMESTAMP, Kind.INSTANT, Kind.TIME, Kind.DURATION)

    @property
    def is_coded(self) -> bool:
        """Whether values are compared for equality only, as codes."""
        return self in (Kind.FLOAT, Kind.TEXT, Kind.BINARY)

    @property
    def is_order(self) -> bool:
        """Whether a column can give the order of arrival."""
        return not self.is_coded and self is not Kind.DECIMAL

    @property
    def plural(self) -> str:
        """Values of this kind, for messages."""
        return {
            Kind.FLOAT: "floating-point numbers",
            Kind.TEXT: "strings",
            Kind.BINARY: "binary values",
        }.get(self, f"values of kind {self.value}")


@dataclass(frozen=True)
class ColumnType:
    """What is known of a column before any of its rows.

    Parameters
    ----------
    name : str
        Table and column, for messages.
    column : str
        The column's name in its table.
    dtype : DataType
        Type of the values, decoded if they are dictionary-encoded.
    kind : Kind
        What they measure.
    tick : int
        Nanoseconds of its unit if it is temporal, units of ``10 ** -38`` if it is decimal, else
        one.
    """

    name: str
    column: str
    dtype: pa.DataType
    kind: Kind
    tick: int

    def read(self, batch: pa.RecordBatch) -> pa.Array:
        """Return this column of ``batch``, ready to be compared."""
        return self.comparable(batch.column(self.column))

    def comparable(self, array: pa.Array) -> pa.Array:
        """Return ``array`` in the form in which its values are compared: decoded, and so on."""
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if self.kind is Kind.TEXT:
            return array.cast(pa.large_string())
        if self.kind is Kind.BINARY:
            return canonical_binary(array)
        if self.kind is Kind.FLOAT:
            return canonical_float(array)
        return unscaled(array, self.name) if self.kind is Kind.DECIMAL else array

    @property
    def limits(self) -> tuple[int, int]:
        """Least and greatest value that the type can have; not for kinds that are coded."""
        if self.kind is Kind.BOOLEAN:
            return 0, 1
        if self.kind is Kind.DECIMAL:
            most = min(10**self.dtype.precision - 1, (1 << 63) - 1)
            return -most, most
        bits = self.dtype.bit_width
        if pa.types.is_unsigned_integer(self.dtype):
            return 0, (1 << bits) - 1
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table, ready to be compared.

    Parameters
    ----------
    type : ColumnType
        What it is.
    data : ChunkedArray
        The column, in the form in which it is compared.
    """

    type: ColumnType
    data: pa.ChunkedArray

    @property
    def name(self) -> str:
        """Table and column, for messages."""
        return self.type.name

    @property
    def kind(self) -> Kind:
        """What it measures."""
        return self.type.kind

    @cached_property
    def valid(self) -> npt.NDArray[np.bool_] | None:
        """Which rows are not null; None if all are."""
        if self.data.null_count == 0:
            return None
        mask: npt.NDArray[np.bool_] = self.data.is_valid().to_numpy()
        return mask

    @property
    def is_empty(self) -> bool:
        """Whether there is no value at all."""
        return self.data.null_count == len(self.data)

    @cached_property
    def integers(self) -> npt.NDArray[Any]:
        """The values as int64 or uint64; nulls take the place of some value that there is."""
        if self.is_empty:
            return np.zeros(len(self.data), np.int64)
        data = self.data
        if self.kind is Kind.BOOLEAN:
            data = data.cast(pa.uint8())
        elif self.kind.is_temporal:
            data = data.cast(pa.int32() if data.type.bit_width == 32 else pa.int64())
        if self.valid is not None:
            data = data.fill_null(data[int(np.argmax(self.valid))])
        unsigned = pa.types.is_unsigned_integer(data.type)
        array: npt.NDArray[Any] = data.to_numpy()
        return array.astype(np.uint64 if unsigned else np.int64, copy=False)


def column_type(schema: pa.Schema, name: str, side: str) -> ColumnType:
    """Return what column ``name`` is, in a table which messages call ``side``.

    Raises
    ------
    UnknownColumnError
        If there is none of that name.
    UsageError
        If there are several.
    UnsupportedTypeError
        If its type cannot be compared.
    """
    require_column(schema.names, name, f"the {side} table")
    dtype = schema.field(name).type
    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    label = f"{side}.{name}"
    kind, tick = _kind(dtype, label)
    return ColumnType(label, name, dtype, kind, tick)


def read_column(table: pa.Table, name: str, side: str) -> Column:
    """Return column ``name`` of ``table``, which messages call ``side``; see :func:`column_type`.

    Raises
    ------
    UsageError
        If there is none, or it cannot be compared.
    """
    found = column_type(table.schema, name, side)
    chunks = [found.comparable(chunk) for chunk in table.column(name).chunks]
    empty = found.comparable(pa.array([], table.schema.field(name).type))
    return Column(found, pa.chunked_array(chunks, type=empty.type))


def row_at(rows: pa.Table | pa.RecordBatch, number: int) -> dict[str, object]:
    """Return one row by the names of its columns, for messages."""
    return {
        name: column[number].as_py()
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
    }


def integer_view(array: pa.Array) -> npt.NDArray[Any]:
    """Return the values of an integer or temporal array as they lie in its buffer, not copied.

    Booleans, which are bits in Arrow, become bytes. What stands in the place of a null may be
    anything.
    """
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    size = array.type.bit_width // 8
    dtype = np.dtype(f"{'u' if pa.types.is_unsigned_integer(array.type) else 'i'}{size}")
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), dtype)
    return np.frombuffer(data, dtype, len(array), array.offset * size)


def validity(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Which values of ``array`` are not null; None if all are."""
    if not array.null_count:
        return None
    mask: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
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
    if types.is_decimal(dtype):
        return Kind.DECIMAL, 10 ** (DECIMAL_DIGITS - dtype.scale)
    if types.is_floating(dtype):
        return Kind.FLOAT, 1
    if types.is_string(dtype) or types.is_large_string(dtype):
        return Kind.TEXT, 1
    if any(
        test(dtype) for test in (types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    ):
        return Kind.BINARY, 1
    if types.is_null(dtype):
        raise UntypedColumnError(label)
    raise UnsupportedTypeError(label, dtype, SUPPORTED)
