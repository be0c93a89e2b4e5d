# SPDX-License-Identifier: Apache-2.0
"""Columns whose values must be equal: by which rule, and in one partition, whatever their types.

Here texts are equal if their bytes are. To Spark those of a collation may be equal though their
bytes differ, and those of two types ``char(n)`` if one has more blanks at its end.
"""

from collections.abc import Iterable
import re

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DecimalType,
    DoubleType,
    FractionalType,
    IntegralType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from host import UsageError
from host.errors import AcceleratorLimitError

__all__ = ["common_type", "partition_key", "require_equal_bytes", "require_plain_keys"]

_BINARY = "UTF8_BINARY"
_CHAR = re.compile(r"char\((?P<length>\d+)\)")


def common_type(left: DataType, right: DataType) -> DataType:
    """Return the type that both columns can be cast to without changing a value."""
    if isinstance(left, IntegralType):
        return LongType()
    if isinstance(left, FractionalType):
        if isinstance(left, DecimalType) and isinstance(right, DecimalType):
            return DecimalType(38, max(left.scale, right.scale))
        return DoubleType()
    return left


def partition_key(column: Column, kind: DataType) -> Column:
    """Return a key column as ``kind``, with equal bytes where values are equal.

    Spark compares all NaN as equal, and -0.0 as 0.0, but does not hash them alike.
    """
    if isinstance(kind, DecimalType):
        # What does not fit the common type equals nothing of the other column: null, and no error.
        return column.try_cast(kind)
    cast = column.cast(kind)
    if not isinstance(kind, DoubleType):
        return cast
    return F.when(F.isnan(cast), F.lit(float("nan"))).otherwise(cast + F.lit(0.0))


def require_equal_bytes(
    left: StructType, right: StructType, pairs: Iterable[tuple[str, str]]
) -> None:
    """Raise unless columns of two inputs are equal for Spark where their bytes are.

    Raises
    ------
    AcceleratorLimitError
        If Spark compares texts by a collation; it can do so itself.
    UsageError
        If there is no rule for two columns, or one that nobody follows here.
    """
    for own, other in pairs:
        sides = left[own], right[other]
        collations = [_collation(field) for field in sides]
        if None in collations:
            continue  # no texts, or a comparison that others refuse
        if collations[0] != collations[1]:
            raise UsageError(
                f"Column 'left.{own}' has collation {collations[0]} and 'right.{other}' "
                f"{collations[1]}, so no rule says which of their texts are equal; give one of "
                f"them the other's, by collate({own}, {collations[1]!r})."
            )
        lengths = [_char_length(field) for field in sides]
        if None not in lengths and lengths[0] != lengths[1]:
            raise UsageError(
                f"Column 'left.{own}' is char({lengths[0]}) and 'right.{other}' "
                f"char({lengths[1]}): they differ by the blanks at the end that fill their texts; "
                f"compare texts without these, as rtrim({own}) makes them."
            )
        _require_plain(sides[0], f"left.{own}")


def require_plain_keys(schema: StructType, names: Iterable[str]) -> None:
    """Raise unless values of these columns are equal for Spark where their bytes are.

    Raises
    ------
    AcceleratorLimitError
        If Spark compares texts by a collation; it can do so itself.
    """
    for name in names:
        _require_plain(schema[name], name)


def _require_plain(field: StructField, name: str) -> None:
    collation = _collation(field)
    if collation not in (None, _BINARY):
        raise AcceleratorLimitError(
            f"Column {name!r} has collation {collation}, by which Spark finds texts equal whose "
            f"bytes differ, and only bytes are compared here",
            f"leave it to Spark itself (in batch frames, over a window by time, without a device "
            f"for aggregates), or compare text of one spelling and collation {_BINARY}, such as "
            f"collate(lower({field.name}), {_BINARY!r})",
        )


def _collation(field: StructField) -> str | None:
    """Return the name of the collation of a column of text; None for other columns."""
    return field.dataType.collation if isinstance(field.dataType, StringType) else None


def _char_length(field: StructField) -> str | None:
    """Return the length of a column of type ``char``, which Spark keeps beside its type."""
    kind = (field.metadata or {}).get("__CHAR_VARCHAR_TYPE_STRING", "")
    found = _CHAR.fullmatch(kind)
    return None if found is None else found["length"]
