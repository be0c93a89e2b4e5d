# SPDX-License-Identifier: Apache-2.0
"""Columns of the inputs and of the answer, checked once, and those whose values must be equal."""

from collections.abc import Iterable, Sequence
import re

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
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
from host.columns.windows import PairWindows
from host.errors import AcceleratorLimitError, UnsupportedTypeError
from host.operators.aggregate import WindowAggregation
from host.query.queries import BOUNDARIES, AggregateQuery, Query
from host.query.tables import output_names, require_column, require_distinct
from host.reference.arrivals import Side
from host.reference.types import JoinType

__all__ = [
    "WATERMARK",
    "answer_schema",
    "arrow_schema",
    "check_batch_frame",
    "check_columns",
    "check_frame",
    "common_type",
    "equal_columns",
    "find_column",
    "is_streaming",
    "joined_schema",
    "numbered",
    "output_schema",
    "partition_key",
    "quoted",
    "read_names",
    "read_schema",
    "require_columns",
    "require_equal_bytes",
    "rows_with_a_time",
    "task_columns",
    "told_apart",
    "without_watermarks",
]

#: Key of the metadata of an event time: milliseconds by which its watermark stays behind.
WATERMARK = "spark.watermarkDelayMs"

# Columns of the two inputs and of the answer: checked once, before any row is read.


def check_batch_frame(frame: object, side: str) -> None:
    """Raise unless ``frame`` is a batch frame whose column names differ.

    Spark accepts Arrow functions on streaming frames and answers each micro-batch alone, which
    loses every pair between two of them; so a streaming frame is refused here. Two of them are
    joined by :mod:`spark_offload.stream`.
    """
    check_frame(frame, side)
    if getattr(frame, "isStreaming", False):
        raise UsageError(
            f"The {side} input is a streaming DataFrame, which a batch join cannot read."
        )


def is_streaming(frame: object) -> bool:
    """Tell whether ``frame`` is a streaming frame."""
    return isinstance(frame, DataFrame) and frame.isStreaming


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


def require_columns(left: DataFrame, right: DataFrame, query: Query) -> None:
    """Raise unless the inputs have the columns that a query names: of time, and of its terms."""
    for own, other in (query.time, *((term.left, term.right) for term in query.terms)):
        find_column(left.schema, own, "left")
        find_column(right.schema, other, "right")


def equal_columns(query: Query) -> list[tuple[str, str]]:
    """Return the left and right columns that a query wants to be equal."""
    return [(term.left, term.right) for term in query.terms if term.is_equality]


def quoted(name: str) -> str:
    """Return ``name`` as Spark reads it where a column's name is asked for (``F.col``)."""
    return name if name.isidentifier() else _in_sql(name)


def _in_sql(name: str) -> str:
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
        return frame, {name: _in_sql(name) for name in names}
    numbered = {name: f"{letter}{index}" for index, name in enumerate(names)}
    return frame.toDF(*numbered.values()), numbered


def output_schema(
    left: StructType,
    right: StructType,
    suffix: str,
    how: JoinType = JoinType.INNER,
    behind: Sequence[str] = (),
) -> StructType:
    """Return the schema of the answer: the left columns, then the right ones if there are pairs.

    The names are those of :func:`host.query.tables.output_names`, whatever
    ``spark.sql.caseSensitive`` says. Columns that are null where a row comes alone are nullable, as
    Spark's own join has them.
    """
    names = output_names(left.names, right.names, suffix, how, behind)
    fields = [
        StructField(field.name, field.dataType, field.nullable or how.nulls(Side.R), field.metadata)
        for field in left.fields
    ]
    fields += [
        StructField(name, field.dataType, field.nullable or how.nulls(Side.S))
        # Without pairs there are no names left for the right columns.
        for field, name in zip(right.fields, names[len(fields) :], strict=False)
    ]
    return StructType(fields)


def joined_schema(left: StructType, right: StructType, query: Query) -> StructType:
    """Return the schema of the answer to a join, with the boundaries of windows if it has them."""
    behind = BOUNDARIES if query.per_window else ()
    schema = output_schema(left, right, query.suffix, query.how, behind)
    if not behind:
        return schema
    # Raises where the windows do not suit the columns.
    PairWindows(query, arrow_schema(left, "left"), arrow_schema(right, "right"))
    kind = left[query.time[0]].dataType
    boundary = LongType() if isinstance(kind, IntegralType) else kind
    return StructType([*schema, *(StructField(name, boundary, False) for name in behind)])


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


def task_columns(left: DataFrame, right: DataFrame, schema: StructType) -> dict[str, pa.Schema]:
    """Return the columns of the inputs and of the answer, as tasks of two inputs need to know."""
    return {
        "left": arrow_schema(left.schema, "left"),
        "right": arrow_schema(right.schema, "right"),
        "output": arrow_schema(schema, "output"),
    }


# Columns whose values must be equal: by which rule, and in one partition, whatever their types.
#
# Here texts are equal if their bytes are. To Spark those of a collation may be equal though their
# bytes differ, and those of two types ``char(n)`` if one has more blanks at its end.

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


def _require_plain_keys(schema: StructType, names: Iterable[str]) -> None:
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
            f"leave it to Spark itself (as-of joins and aggregates of batch frames, without a "
            f"device), or compare text of one spelling and collation {_BINARY}, such as "
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


# Columns that an aggregation reads, and those of its answer.


def check_columns(frame: DataFrame, query: AggregateQuery, side: str) -> pa.Schema:
    """Return the columns that are read, which the frame has, of types that the host aggregates.

    Raises
    ------
    UnsupportedTypeError
        If the host cannot aggregate a type; Spark itself may.
    UsageError
        If a column is not there, or the windows do not suit the column of time.
    """
    for name in (query.time, *query.on, *query.columns):
        find_column(frame.schema, name, side)
    _require_plain_keys(frame.schema, query.on)
    given = arrow_schema(read_schema(frame.schema, query), side)
    WindowAggregation(given, query)
    return given


def read_schema(schema: StructType, query: AggregateQuery) -> StructType:
    """Return the columns that are read: the one of time, the keys, those that are aggregated."""
    return StructType([schema[name] for name in read_names(query)])


def read_names(query: AggregateQuery) -> list[str]:
    """Return the names of the columns of :func:`read_schema`."""
    return list(dict.fromkeys([query.time, *query.on, *query.columns]))


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


def without_watermarks(schema: StructType) -> StructType:
    """Return ``schema`` with columns that are no event times.

    A pair can be older than the watermark by the width of the window, in either of its times; an
    operator that took one of them for its event time would drop the pair as late.
    """
    fields = [
        StructField(
            field.name,
            field.dataType,
            field.nullable,
            {key: value for key, value in field.metadata.items() if key != WATERMARK},
        )
        for field in schema.fields
    ]
    return StructType(fields)


def answer_schema(schema: StructType, query: AggregateQuery) -> StructType:
    """Return the columns of the answer, in Spark's types; keys are the columns of the input.

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
    fields += [schema[key] for key in query.on]
    for name, one in query.aggregates.items():
        kind = LongType() if one.column is None else schema[one.column].dataType
        if one.function == "mean":
            kind = DoubleType()
        elif one.function == "sum":
            kind = LongType() if isinstance(kind, IntegralType) else DoubleType()
        elif one.function == "count":
            kind = LongType()
        fields.append(StructField(name, kind, one.function != "count"))
    return without_watermarks(StructType(fields))
