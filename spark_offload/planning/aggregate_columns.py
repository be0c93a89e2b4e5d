# SPDX-License-Identifier: Apache-2.0
"""Columns that an aggregation reads, and those of its answer."""

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, IntegralType, LongType, StructField, StructType

from host.aggregate.stream import WindowAggregation
from host.query.aggregate_query import BOUNDARIES, Aggregate, AggregateQuery
from spark_offload.layout.columns import arrow_schema, find_column, quoted

__all__ = ["answer_schema", "check_columns", "rows_with_a_time"]


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
    given = arrow_schema(rows_with_a_time(frame, query).schema, side)
    WindowAggregation(given, query)
    return given


def rows_with_a_time(frame: DataFrame, query: AggregateQuery) -> DataFrame:
    """Return the columns that are read, of the rows that have a time."""
    names = dict.fromkeys([query.time, *query.keys, *query.columns])
    time = F.col(quoted(query.time))
    return frame.where(time.isNotNull()).select(*(F.col(quoted(name)) for name in names))


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
