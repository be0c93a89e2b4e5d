# SPDX-License-Identifier: Apache-2.0
"""What Spark's own plan of a frame tells before a row is read; Spark Connect shows no plans."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
import json
import operator
import re
from typing import Any
from urllib.parse import unquote, urlsplit

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JJavaError
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StringType, StructType

from spark_offload.cluster.machines import is_connect

__all__ = [
    "FILTERING",
    "NO_ESTIMATE",
    "ParquetRead",
    "analysed",
    "children",
    "delaying_operator",
    "estimated_bytes",
    "estimated_rows",
    "is_plain_read",
    "parquet_read",
    "partition_settings",
]

# Trees of Spark's query compiler in the JVM: plans of frames, and expressions.
#
# Spark Connect does not show them to programs.

# As a class at once: a name below `jvm` takes a trip to the JVM for each of its parts.
_PATTERNS = "org.apache.spark.sql.catalyst.trees.TreePattern"


def analysed(frame: DataFrame) -> Any:
    """Return the plan of a frame with names resolved and types known; nothing runs for it."""
    return frame._jdf.queryExecution().analyzed()


def children(node: Any) -> Iterator[Any]:
    """Yield the inputs of a node of a plan, or the operands of an expression."""
    found = node.children()
    for place in range(found.size()):
        yield found.apply(place)


def _kind_of(node: Any) -> str:
    """Return the name of the class of a node, such as ``EqualTo``."""
    return str(node.getClass().getSimpleName())


def _has_python_function(node: Any) -> bool:
    """Return whether an expression of a plan calls a function of Python."""
    pattern = JavaClass(_PATTERNS, node._gateway_client).PYTHON_UDF()
    return bool(node.containsPattern(pattern))


# What Spark's plan of an input tells before a row is read. Spark Connect does not show plans.

NO_ESTIMATE = (1 << 63) - 1
"""Bytes of a frame of which Spark knows nothing."""

SOURCES = {
    "DataSourceV2Relation",
    "DataSourceV2ScanRelation",
    "LocalRelation",
    "LogicalRelation",
    "Range",
}
"""Nodes of a plan that read a table, a file, or rows that are there already; RDDs compute."""

PASSING = {"Project", "SubqueryAlias", "View"}
"""Nodes that have a row for each row that they get."""

FILTERING = {*PASSING, "Filter"}
"""Those, and nodes that leave rows out."""


def estimated_bytes(frame: DataFrame) -> int:
    """Return Spark's estimate of a frame's size, which reads nothing and may be far too high.

    Spark Connect does not tell it: :data:`NO_ESTIMATE`.
    """
    if is_connect(frame):
        return NO_ESTIMATE
    return int(_optimized(frame).stats().sizeInBytes())


def estimated_rows(frame: DataFrame) -> int | None:
    """Return about how many rows a frame has, by Spark's estimate of its bytes; None without one.

    Files are compressed, and filters leave fewer rows than Spark expects, so there may be several
    times as many, or hardly any.
    """
    size = estimated_bytes(frame)
    if size >= NO_ESTIMATE:
        return None
    return size // max(1, int(frame._jdf.schema().defaultSize()))


def is_plain_read(frame: DataFrame, passing: Collection[str] = PASSING) -> bool:
    """Whether a frame is no more than a source, and columns computed from those of each row.

    To read it takes far less time than to join it. Filters do not count as plain, since they may
    leave few rows of very many, unless ``passing`` is :data:`FILTERING`.
    """
    if is_connect(frame):
        return False
    plan = analysed(frame)
    if _has_python_function(plan) or not _is_plain(plan, passing):
        return False
    if frame._jdf.sparkSession().sharedState().cacheManager().isEmpty():
        return True
    # What is cached is computed when it is first read. A frame keeps the plan that it was first
    # used with, and may have been cached since; under another name it gets a plan anew.
    return _is_plain(_optimized(frame.alias("now")), passing)


@dataclass(frozen=True)
class ParquetRead:
    """Parquet files on paths that all machines have, and the columns of them that a frame has.

    Parameters
    ----------
    files : tuple of str
        Paths of the files, by name.
    columns : tuple of str
        Names in the files of the columns of the frame.
    keys : mapping of str to tuple of Scalar
        Columns that stand in the names of folders, and the value of each in every file.
    where : Expression or None
        Which rows the frame has; None: all.
    tested : Schema
        Columns that it is about.
    """

    files: tuple[str, ...]
    columns: tuple[str, ...]
    keys: Mapping[str, tuple[pa.Scalar, ...]] = field(default_factory=dict)
    where: pc.Expression | None = None
    tested: pa.Schema = field(default_factory=lambda: pa.schema([]))

    @property
    def stored(self) -> list[str]:
        """The columns that are read from the files."""
        names = dict.fromkeys((*self.columns, *self.tested.names))
        return [name for name in names if name not in self.keys]


def parquet_read(frame: DataFrame) -> ParquetRead | str:
    """Return what a frame reads, if it is rows and columns of Parquet files, else why not."""
    if is_connect(frame):
        return "is a frame of Spark Connect, which shows no plans"
    if not is_plain_read(frame, FILTERING):
        return "is more than a read of files"
    node = analysed(frame)
    wanted = [_attribute(column) for column in _items(node.output())]
    shown, conditions = len(wanted), []
    while _kind_of(node) in FILTERING:
        if _kind_of(node) == "Filter":
            ids = [_attribute(column) for column in _items(node.condition().references().toSeq())]
            conditions.append((node.condition(), ids, len(wanted)))
            wanted += ids
        elif _kind_of(node) == "Project":
            below = {}
            for item in _items(node.projectList()):
                source = item.child() if _kind_of(item) == "Alias" else item
                if _kind_of(source) == "AttributeReference":
                    below[_attribute(item)] = _attribute(source)
            if not set(wanted) <= set(below):
                return "has columns that are computed"
            wanted = [below[column] for column in wanted]
        node = node.child()
    if _kind_of(node) != "LogicalRelation" or _kind_of(node.relation()) != "HadoopFsRelation":
        return "is no read of files"
    relation = node.relation()
    attributes = {_attribute(column): column for column in _items(node.output())}
    names = {one: str(column.name()) for one, column in attributes.items()}
    if not set(wanted) <= set(names):
        return "has columns that are computed"
    options = {str(option) for option in _items(relation.options().keys().toSeq())}
    session = frame.sparkSession
    skipping = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
    if _kind_of(relation.fileFormat()) != "ParquetFileFormat":
        return "is no read of Parquet files"
    if not relation.bucketSpec().isEmpty():
        return "is a read of buckets"
    if options - {"path", "paths", "basePath"} or any(
        session.conf.get(name) == "true" for name in skipping
    ):
        return "is read with options that Spark alone knows"
    addresses = [urlsplit(address) for address in frame.inputFiles()]
    if any(address.scheme != "file" for address in addresses):
        return "has files that are not on a path of the machines"
    files = sorted(unquote(address.path) for address in addresses)
    try:
        found = [
            _condition(condition, {one: names[wanted[at + place]] for place, one in enumerate(ids)})
            for condition, ids, at in conditions
        ]
        keys = _folder_keys(relation, files)
        tested = {names[one]: _type(attributes[one]) for one in wanted[shown:]}
    except _Strange as strange:
        return f"has {strange}, which Spark alone knows"
    return ParquetRead(
        tuple(files),
        tuple(names[column] for column in wanted[:shown]),
        keys,
        reduce(operator.and_, found) if found else None,
        pa.schema(tested),
    )


# Filters that tasks can apply: columns of a file compared with values, by the rules of Spark.


class _Strange(Exception):
    """Part of a plan that is not understood here; Spark computes it."""


_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
"""Digits of whole numbers, by their bits."""

_COMPARISONS = {
    "EqualTo": (operator.eq, "EqualTo"),
    "LessThan": (operator.lt, "GreaterThan"),
    "LessThanOrEqual": (operator.le, "GreaterThanOrEqual"),
    "GreaterThan": (operator.gt, "LessThan"),
    "GreaterThanOrEqual": (operator.ge, "LessThanOrEqual"),
}
"""Comparisons, and the same with their sides exchanged."""

_ALIKE = (
    pa.types.is_boolean, pa.types.is_signed_integer, pa.types.is_floating, pa.types.is_decimal,
    pa.types.is_string, pa.types.is_binary, pa.types.is_date32, pa.types.is_timestamp,
)  # fmt: skip
"""Types whose values Arrow compares as Spark does, unless a text has a collation."""

_MOST_VALUES, _MOST_FOLDERS = 100, 10_000
"""Values of an ``IN``, and folders with keys, that the driver looks at, at most."""


Names = Mapping[int | str, Any]
"""Names of the columns of files by their attributes, and expressions that have a number."""


def _condition(node: Any, names: Names) -> pc.Expression:
    """Return a condition for Arrow, which is null where Spark's is.

    Raises
    ------
    _Strange
        If it is not understood.
    """
    kind, parts = _kind_of(node), list(children(node))
    if kind in ("And", "Or"):
        left, right = (_condition(part, names) for part in parts)
        return left & right if kind == "And" else left | right
    if kind == "Not":
        return ~_condition(parts[0], names)
    if kind in ("IsNull", "IsNotNull"):
        column, _ = _column(parts[0], names)
        return column.is_null() if kind == "IsNull" else column.is_valid()
    if kind == "In" and len(parts) <= _MOST_VALUES:
        return reduce(operator.or_, [_compared("EqualTo", parts[0], v, names) for v in parts[1:]])
    if kind == "Between":
        return _condition(node.replacement(), names)
    if kind == "With":  # an expression that stands in several places, here that of a Between
        shared: Names = {str(one.id()): one.child() for one in parts[1:]}
        return _condition(parts[0], {**names, **shared})
    if kind in _COMPARISONS and _is_value(parts[0]):
        return _compared(_COMPARISONS[kind][1], parts[1], parts[0], names)
    if kind in _COMPARISONS:
        return _compared(kind, parts[0], parts[1], names)
    if pa.types.is_boolean(_type(node)):
        return pc.scalar(_value(node)) if _is_value(node) else _column(node, names)[0]
    raise _Strange(f"a filter with {kind}")


def _compared(kind: str, one: Any, other: Any, names: Names) -> pc.Expression:
    """Return the comparison of a column with a value."""
    column, type_ = _column(one, names)
    value = _value(other)
    if value.type != type_ or (pa.types.is_boolean(type_) and kind != "EqualTo"):
        raise _Strange(f"a comparison of {type_}")
    found: pc.Expression = _COMPARISONS[kind][0](column, pc.scalar(value))
    # To Spark NaN is the greatest number.
    nan = pa.types.is_floating(type_) and kind.startswith("Greater")
    return found | pc.is_nan(column) if nan else found


def _column(node: Any, names: Names) -> tuple[pc.Expression, pa.DataType]:
    """Return a column, or one cast to a type that holds all its values, and its type."""
    kind = _kind_of(node)
    if kind == "AttributeReference":
        return pc.field(names[_attribute(node)]), _type(node)
    if kind == "CommonExpressionRef":
        return _column(names[str(node.id())], names)
    if kind == "Cast":
        column, narrow = _column(node.child(), names)
        wide = _type(node)
        if _is_wider(wide, narrow):
            return column.cast(wide), wide
    raise _Strange(f"a filter with {kind}")


def _is_wider(wide: pa.DataType, narrow: pa.DataType) -> bool:
    whole = pa.types.is_signed_integer(narrow)
    if wide == narrow:  # Spark casts all values of an IN to one type, even if they have it
        return True
    if pa.types.is_decimal(wide) and pa.types.is_decimal(narrow):
        spare = wide.precision - narrow.precision
        return 0 <= wide.scale - narrow.scale <= spare
    if pa.types.is_decimal(wide):
        return whole and _DIGITS[narrow.bit_width] <= wide.precision - wide.scale
    if pa.types.is_float64(wide):
        return pa.types.is_float32(narrow) or (whole and narrow.bit_width <= 32)
    return whole and pa.types.is_signed_integer(wide) and wide.bit_width > narrow.bit_width


def _is_value(node: Any) -> bool:
    """Whether an expression has one value, now and whenever the query runs."""
    fixed = _kind_of(node) in ("Literal", "Cast", "UnaryMinus")
    return fixed and all(_is_value(part) for part in children(node))


def _value(node: Any) -> pa.Scalar:
    """Return the value of an expression that depends on no row."""
    if not _is_value(node):
        raise _Strange(f"a filter with {_kind_of(node)}")
    try:
        return _scalar(node.eval(None), _type(node))
    except Py4JJavaError as error:
        raise _Strange(f"a filter with {_kind_of(node)}") from error


def _scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Return a value as Spark holds it inside for Arrow."""
    if value is not None and pa.types.is_string(kind):
        value = str(value)
    elif value is not None and pa.types.is_decimal(kind):
        value = Decimal(str(value))
    elif value != value:
        raise _Strange("a comparison with NaN")
    return pa.scalar(value, kind)


def _type(node: Any) -> pa.DataType:
    """Return the type of a field or an expression, if Arrow compares its values as Spark does."""
    told = {"name": "", "type": json.loads(node.dataType().json()), "nullable": True}
    (one,) = StructType.fromJson({"type": "struct", "fields": [{**told, "metadata": {}}]})
    kind = to_arrow_type(one.dataType, timezone="UTC")
    collated = isinstance(one.dataType, StringType) and one.dataType != StringType()
    if collated or not any(is_one(kind) for is_one in _ALIKE):
        raise _Strange(f"a filter of {one.dataType.simpleString()}")
    return kind


def _folder_keys(relation: Any, files: list[str]) -> dict[str, tuple[pa.Scalar, ...]]:
    """Return the columns that stand in the names of folders, and the value of each in every file.

    Raises
    ------
    _Strange
        If they cannot be told.
    """
    if not relation.partitionSchema().length():
        return {}
    if _kind_of(relation.location()) != "InMemoryFileIndex":
        raise _Strange("folders of a table")
    spec = relation.location().partitionSpec()
    columns, folders = _items(spec.partitionColumns()), spec.partitions()
    if folders.size() > _MOST_FOLDERS:
        raise _Strange(f"{folders.size():,} folders")
    values: dict[str, list[pa.Scalar]] = {}
    for folder in _items(folders):
        values[str(folder.path().toUri().getPath())] = [
            _scalar(folder.values().get(place, column.dataType()), _type(column))
            for place, column in enumerate(columns)
        ]
    places = [file.rpartition("/")[0] for file in files]
    if not set(places) <= set(values):
        raise _Strange("files outside of the folders with keys")
    return {
        str(column.name()): tuple(values[place][at] for place in places)
        for at, column in enumerate(columns)
    }


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]


def _attribute(expression: Any) -> int:
    return int(expression.exprId().id())


def partition_settings(session: SparkSession) -> tuple[int, int]:
    """Return the bytes that Spark wants in a partition, and how many partitions at most."""
    size = session.conf.get("spark.sql.adaptive.advisoryPartitionSizeInBytes", "64m")
    found = re.fullmatch(r"(\d+)([kmgtp]?)b?", str(size).lower())
    bytes_ = int(found[1]) << 10 * " kmgtp".index(found[2] or " ") if found else 1 << 26
    return max(1, bytes_), int(str(session.conf.get("spark.sql.shuffle.partitions", "200")))


def _is_plain(node: Any, passing: Collection[str] = PASSING) -> bool:
    while _kind_of(node) in passing:
        node = node.child()
    return _kind_of(node) in SOURCES


def _optimized(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().optimizedPlan()


# Operators before a streaming join that hold rows back; it would take these for late.

_DELAYING = {
    "Aggregate",
    "Distinct",
    "FlatMapGroupsWithState",
    "FlatMapGroupsInPandasWithState",
    "TransformWithState",
    "TransformWithStateInPySpark",
    "TransformWithStateInPandas",
}


def delaying_operator(frame: DataFrame) -> str | None:
    """Return the name of an operator in the plan of ``frame`` that emits old rows; None if none.

    An operator that waits for the watermark, such as a windowed aggregation, emits rows that are
    older than it in the very micro-batch in which it rises. Spark's operators know that of each
    other; a processor in Python is told the new watermark only.

    Spark Connect does not show plans to programs, so there is no name then.
    """
    if is_connect(frame):
        return None
    nodes: list[Any] = [analysed(frame)]
    while nodes:
        node = nodes.pop()
        inputs = list(children(node))
        name = str(node.nodeName())
        streams = sum(bool(child.isStreaming()) for child in inputs)
        if (name in _DELAYING and streams) or (name == "Join" and streams == 2):
            return name
        nodes.extend(inputs)
    return None
