# SPDX-License-Identifier: Apache-2.0
"""Columns that an aggregation reads, and those of its answer."""

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, IntegralType, LongType, StructField, StructType

from host.operators.aggregate import WindowAggregation
from host.query.queries import BOUNDARIES, Aggregate, AggregateQuery
from spark_offload.layout.columns import arrow_schema, find_column
from spark_offload.layout.key_types import require_plain_keys

__all__ = ["answer_schema", "check_columns", "numbered", "read_schema", "rows_with_a_time"]


def check_columns(frame: DataFrame, query: AggregateQuery, side: str) -> pa.Schema:
    """Return the columns that are read, which the frame has, of types that the host aggregates.

    Raises
    ------
    UnsupportedTypeError
        If the host cannot aggregate a type; Spark itself may.
    UsageError
        If a column is not there, or the windows do not suit the column of time.
    """
    for name in (query.time, *query.keys, *query.columns):
        find_column(frame.schema, name, side)
    require_plain_keys(frame.schema, query.keys)
    given = arrow_schema(read_schema(frame.schema, query), side)
    WindowAggregation(given, query)
    return given


def read_schema(schema: StructType, query: AggregateQuery) -> StructType:
    """Return the columns that are read: the one of time, the keys, those that are aggregated."""
    names = dict.fromkeys([query.time, *query.keys, *query.columns])
    return StructType([schema[name] for name in names])


def rows_with_a_time(frame: DataFrame, query: AggregateQuery) -> DataFrame:
    """Return the columns of :func:`read_schema`, numbered, of the rows that have a time."""
    places = dict(zip(frame.columns, numbered(frame.schema).names, strict=True))
    rows = frame.toDF(*places.values()).where(F.col(places[query.time]).isNotNull())
    read = rows.select(*(places[name] for name in read_schema(frame.schema, query).names))
    return read.toDF(*numbered(read.schema).names)


def numbered(schema: StructType) -> StructType:
    """Return columns under the names ``c0``, ``c1`` and so on.

    Spark resolves the names of all columns of a frame that a function in Python maps, and quotes
    none of them: dots and backticks would be read as parts of nested names.
    """
    return StructType(
        [
            StructField(f"c{at}", field.dataType, field.nullable)
            for at, field in enumerate(schema.fields)
        ]
    )


def answer_schema(schema: StructType, query: AggregateQuery) -> StructType:
    """Return the columns of the answer, in Spark's types.

    Parameters
    ----------
    schema : StructType
        Columns of the input.
    query : AggregateQuery
        The aggregation.
    """
    time = schema[query.time].dataType
    bound = LongType() if isinstance(time, IntegralType) else time
    fields = [StructField(name, bound, False) for name in BOUNDARIES]
    fields += [schema[key] for key in query.keys]
    for name, one in query.aggregates.items():
        fields.append(_field(name, one, schema))
    return StructType(fields)


def _field(name: str, one: Aggregate, schema: StructType) -> StructField:
    if one.function == "count" or one.column is None:
        return StructField(name, LongType(), False)
    kind = schema[one.column].dataType
    if one.function == "mean":
        return StructField(name, DoubleType())
    if one.function == "sum":
        return StructField(name, LongType() if isinstance(kind, IntegralType) else DoubleType())
    return StructField(name, kind)
