# SPDX-License-Identifier: Apache-2.0
"""Columns of the two inputs and of the answer: checked once, before any row is read."""

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from host import UsageError
from host.errors import UnsupportedTypeError
from host.query.tables import output_names, require_column, require_distinct
from host.reference.arrivals import Side
from host.reference.types import JoinType

__all__ = [
    "arrow_schema",
    "check_batch_frame",
    "check_frame",
    "find_column",
    "in_sql",
    "output_schema",
    "quoted",
    "told_apart",
]


def check_batch_frame(frame: object, side: str) -> None:
    """Raise unless ``frame`` is a batch frame whose column names differ.

    Spark accepts Arrow functions on streaming frames and answers each micro-batch alone, which
    loses every pair between two of them; so a streaming frame is refused here. Two of them are
    joined by :mod:`spark_offload.streaming`.
    """
    check_frame(frame, side)
    if getattr(frame, "isStreaming", False):
        raise UsageError(
            f"The {side} input is a streaming DataFrame, which a batch join cannot read."
        )


def check_frame(frame: object, side: str) -> None:
    """Raise unless ``frame`` is a frame whose column names differ."""
    if not isinstance(frame, DataFrame):
        raise UsageError(
            f"The {side} input must be a pyspark.sql.DataFrame, not a {_full_name(type(frame))}; "
            f"spark.createDataFrame(...) makes one out of rows, a pandas frame or an Arrow table."
        )
    require_distinct(frame.columns, f"the {side} input")


def _full_name(kind: type) -> str:
    """Return the name of a class with its module: every library has its own ``DataFrame``."""
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def find_column(schema: StructType, name: str, side: str) -> StructField:
    """Return the field called ``name``, or raise telling which there are."""
    require_column(schema.names, name, f"the {side} input")
    return schema[name]


def quoted(name: str) -> str:
    """Return ``name`` as Spark reads it where a column's name is asked for (``F.col``)."""
    return name if name.isidentifier() else in_sql(name)


def in_sql(name: str) -> str:
    """Return ``name`` as Spark reads it in SQL, whatever letters it holds and SQL means by it."""
    return "`" + name.replace("`", "``") + "`"


def told_apart(frame: DataFrame, letter: str = "c") -> tuple[DataFrame, dict[str, str]]:
    """Return a frame whose columns Spark can tell apart, and how SQL reads the name of each.

    Names are exact here, and to Spark ``V`` may be ``v``: then columns get numbers for names.

    Parameters
    ----------
    frame : DataFrame
        The frame, which is returned as it is if its names will do.
    letter : str
        First letter of new names.
    """
    names = frame.columns
    if len({name.casefold() for name in names}) == len(names):
        return frame, {name: in_sql(name) for name in names}
    numbered = {name: f"{letter}{index}" for index, name in enumerate(names)}
    return frame.toDF(*numbered.values()), numbered


def output_schema(
    left: StructType, right: StructType, suffix: str, how: JoinType = JoinType.INNER
) -> StructType:
    """Return the schema of the answer: the left columns, then the right ones if there are pairs.

    The names are those of :func:`host.query.tables.output_names`, whatever
    ``spark.sql.caseSensitive`` says. Columns that are null where a row comes alone are nullable, as
    Spark's own join has them.
    """
    names = output_names(left.names, right.names, suffix, how)
    fields = [_nullable(field, how, Side.R) for field in left.fields]
    fields += [
        StructField(name, field.dataType, field.nullable or how.nulls(Side.S))
        # Without pairs there are no names left for the right columns.
        for field, name in zip(right.fields, names[len(fields) :], strict=False)
    ]
    return StructType(fields)


def _nullable(field: StructField, how: JoinType, side: Side) -> StructField:
    nullable = field.nullable or how.nulls(side)
    return StructField(field.name, field.dataType, nullable, field.metadata)


def arrow_schema(schema: StructType, side: str) -> pa.Schema:
    """Return ``schema`` as Arrow, or raise naming the column that Spark cannot hand over."""
    for field in schema.fields:
        try:
            to_arrow_schema(StructType([field]), timezone="UTC")
        except (PySparkException, pa.ArrowException) as error:
            raise UnsupportedTypeError(
                field.name,
                f"{field.dataType.simpleString()} (in the {side} input)",
                "a type that Spark passes to Python as Arrow data",
            ) from error
    return to_arrow_schema(schema, timezone="UTC")
