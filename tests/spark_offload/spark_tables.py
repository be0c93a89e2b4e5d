# SPDX-License-Identifier: Apache-2.0
"""Arrow tables as Spark frames, every value unchanged."""

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from host import UsageError
from host.errors import UnsupportedTypeError

__all__ = ["frame_of_table"]


def frame_of_table(spark: SparkSession, table: pa.Table, name: str) -> DataFrame:
    """Return ``table`` as a frame with its rows in the same order.

    Types that Spark lacks become the nearest one that holds all their values; times without a zone
    stay so.

    Raises
    ------
    UsageError
        If a column has no such type, or holds a time finer than a microsecond.
    """
    for index, field in enumerate(table.schema):
        kind = _spark_type(field.type)
        if kind != field.type:
            try:
                column = table.column(index).cast(kind)
            except pa.ArrowException as error:
                raise UsageError(f"Column {field.name!r} of {name}: {error}.") from error
            table = table.set_column(index, pa.field(field.name, kind, field.nullable), column)
        try:
            from_arrow_schema(pa.schema([table.schema.field(index)]))
        except PySparkException as error:
            raise UnsupportedTypeError(
                field.name, f"{field.type} (in {name})", "a type that Spark has"
            ) from error
    return spark.createDataFrame(
        table, schema=from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    )


def _spark_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that Spark has for values of ``kind``; most often ``kind`` itself."""
    types = pa.types
    if types.is_dictionary(kind):
        return _spark_type(kind.value_type)
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if types.is_string_view(kind) or types.is_large_string(kind):
        return pa.string()
    widened = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
        pa.float16(): pa.float32(),
        pa.date64(): pa.date32(),
    }
    return widened.get(kind, kind)
