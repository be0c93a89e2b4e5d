# SPDX-License-Identifier: Apache-2.0
"""Which Arrow types can be compared, and their columns as 64-bit integers."""

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.errors import UnknownColumnError, UnsupportedTypeError, UsageError

__all__ = ["SUPPORTED", "Column", "Kind", "read_column"]

#: For messages.
SUPPORTED = (
    "int8 to int64, uint8 to uint64, bool, date32, date64, timestamp, time, duration, string"
)

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
    TEXT = "string"

    @property
    def is_temporal(self) -> bool:
        """Whether differences are durations."""
        return self not in (Kind.INTEGER, Kind.BOOLEAN, Kind.TEXT)


@dataclass(frozen=True, eq=False)
class Column:
    """One column, ready to be compared.

    Parameters
    ----------
    name : str
        Table and column, for messages.
    kind : Kind
        What it measures.
    tick : int
        Nanoseconds of its unit if it is temporal, else one.
    data : ChunkedArray
        The column, decoded if it was dictionary-encoded.
    """

    name: str
    kind: Kind
    tick: int
    data: pa.ChunkedArray

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


def read_column(table: pa.Table, name: str, side: str) -> Column:
    """Return column ``name`` of ``table``, which messages call ``side``.

    Raises
    ------
    UnknownColumnError
        If there is none of that name.
    UsageError
        If there are several.
    UnsupportedTypeError
        If its type cannot be compared.
    """
    if table.column_names.count(name) > 1:
        raise UsageError(f"The {side} table has several columns called {name!r}; rename them.")
    if name not in table.column_names:
        raise UnknownColumnError(name, table.column_names, table=f"the {side} table")
    data = table.column(name)
    label = f"{side}.{name}"
    if pa.types.is_dictionary(data.type):
        data = data.cast(data.type.value_type)
    kind, tick = _kind(data.type, label)
    return Column(label, kind, tick, data)


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
    if types.is_string(dtype) or types.is_large_string(dtype):
        return Kind.TEXT, 1
    raise UnsupportedTypeError(label, dtype, SUPPORTED)
