# SPDX-License-Identifier: Apache-2.0
"""Two tables as two streams of tuples: encoded, sorted, and with a number for every row."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.durations import Duration
from host.encode.fields import EncodedField, TermColumns, encode_terms
from host.encode.kinds import SUPPORTED, Column, Kind, read_column
from host.encode.scale import Scaled, bound_in_ticks, require_same_kind, scale
from host.errors import DisorderError, KeyRangeError, NullOrderError, UnsupportedTypeError
from host.manifest import Manifest
from host.predicate import Bounds
from host.query import JoinQuery
from host.window import CountWindow, TimeWindow, Window

__all__ = ["EncodedJoin", "EncodedSide", "encode"]

Array = npt.NDArray[Any]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class EncodedSide:
    """Tuples of one table, in their order of arrival.

    Parameters
    ----------
    row : array of int64
        Row of the table.
    timestamp : array of uint64
        Never decreases.
    keys : mapping of str to array
        Key fields.
    valid : array of bool or None
        Which tuples may match at all, having no null; None if all may.
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
        By key field; fields that are absent are open.
    window : CountWindow or TimeWindow
        In units of the timestamps; the same for both sides.
    fields : list of EncodedField
        How the terms were encoded.
    """

    left: EncodedSide
    right: EncodedSide
    bounds: Mapping[str, Bounds]
    window: Window
    fields: list[EncodedField]


def encode(left: pa.Table, right: pa.Table, query: JoinQuery, manifest: Manifest) -> EncodedJoin:
    """Encode two tables for the accelerator that ``manifest`` describes.

    Raises
    ------
    UsageError
        If a column is missing, has a type that cannot be compared, holds a null or goes backwards
        where it gives the order, or if a value does not fit.
    """
    tables = {"left": left, "right": right}
    order = [
        read_column(table, name, side)
        for (side, table), name in zip(tables.items(), query.order, strict=True)
    ]
    terms = [
        TermColumns(
            term, read_column(left, term.left, "left"), read_column(right, term.right, "right")
        )
        for term in query.terms
    ]
    for column in order:
        _require_order(column, query.sorted)
    require_same_kind(*order)
    times, window = _encode_times(order, query, manifest)
    fields = encode_terms(terms, manifest)
    sides = [
        _arranged(
            times[index],
            {field.name: (field.left, field.right)[index] for field in fields},
            _all_valid([(term.left, term.right)[index] for term in terms]),
            query,
        )
        for index in range(2)
    ]
    bounds = {field.name: field.bounds for field in fields}
    return EncodedJoin(sides[0], sides[1], bounds, window, fields)


def _require_order(column: Column, declared_sorted: bool) -> None:
    if column.kind is Kind.TEXT:
        raise UnsupportedTypeError(
            column.name, column.data.type, SUPPORTED.removesuffix(", string")
        )
    if column.valid is not None:
        raise NullOrderError(column.name, int(np.argmin(column.valid)))
    if declared_sorted:
        falls = column.integers[1:] < column.integers[:-1]
        if falls.any():
            at = int(np.argmax(falls))
            raise DisorderError(
                column.name, at + 1, column.data[at].as_py(), column.data[at + 1].as_py()
            )


def _encode_times(
    order: list[Column], query: JoinQuery, manifest: Manifest
) -> tuple[list[UInt64s], Window]:
    scaled = scale(*order)
    if isinstance(query.window, CountWindow):
        if scaled is None:
            raise _time_range(order, None, 64)
        return [scaled.left, scaled.right], query.window
    bits = manifest.timestamp_bits
    top = (1 << bits) - 1
    if scaled is not None and scaled.top > top:
        scaled = scaled.reduced()
    if scaled is None or scaled.top > top:
        raise _time_range(order, scaled, bits)
    width = query.window.lifespan if isinstance(query.window, TimeWindow) else query.window
    assert isinstance(width, (int, Duration, np.integer))
    ticks = bound_in_ticks(
        width if isinstance(width, Duration) else int(width), order[0], scaled.tick, "The window"
    )
    lifespan = scaled.high(Fraction(ticks or 0))
    assert lifespan is not None
    return [scaled.left, scaled.right], TimeWindow(min(lifespan, top))


def _time_range(order: list[Column], scaled: Scaled | None, bits: int) -> KeyRangeError:
    columns = [column for column in order if not column.is_empty]
    tick = min(column.tick for column in columns)
    least = min(int(column.integers.min()) * (column.tick // tick) for column in columns)
    widest = max(columns, key=lambda column: int(column.integers.max()) * column.tick)
    greatest = int(widest.integers.max()) * (widest.tick // tick)
    divisor = 1 if scaled is None else scaled.divisor
    needed = ((greatest - least) // divisor).bit_length()
    remedy = (
        "the times lie too far apart, 64 bits are the most"
        if needed > 64
        else f"cast it to a coarser unit, or build a bundle with {needed} bits of timestamp: "
        f"`python -m hdl generate --preset demo --timestamp-bits {needed} --output DIR`"
    )
    return KeyRangeError(
        widest.name, greatest, least, least + ((1 << bits) - 1) * divisor, remedy=remedy
    )


def _all_valid(columns: list[Column]) -> Bools | None:
    masks = [column.valid for column in columns if column.valid is not None]
    return np.logical_and.reduce(masks) if masks else None


def _arranged(
    time: UInt64s, keys: Mapping[str, Array], valid: Bools | None, query: JoinQuery
) -> EncodedSide:
    """Sort by time; leave out what can neither match nor push a tuple out of a window."""
    rows: Int64s = np.arange(len(time), dtype=np.int64)
    if (time[1:] < time[:-1]).any():
        rows = np.argsort(time, kind="stable").astype(np.int64, copy=False)
    elif valid is None or not query.is_timed:
        return EncodedSide(rows, time, keys, valid)
    if valid is not None and query.is_timed:
        rows, valid = rows[valid[rows]], None
    return EncodedSide(
        rows,
        time[rows],
        {name: column[rows] for name, column in keys.items()},
        None if valid is None else valid[rows],
    )
