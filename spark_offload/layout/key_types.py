# SPDX-License-Identifier: Apache-2.0
"""Columns that rows are partitioned by: equal values in one partition, whatever their types."""

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
)

__all__ = ["common_type", "partition_key"]


def common_type(left: DataType, right: DataType) -> DataType:
    """Return the type that both columns can be cast to without changing a value."""
    if isinstance(left, IntegralType):
        return LongType()
    if isinstance(left, FractionalType):
        if isinstance(left, DecimalType) and isinstance(right, DecimalType):
            return DecimalType(38, max(left.scale, right.scale))
        return DoubleType()
    return StringType() if isinstance(left, StringType) else left


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
