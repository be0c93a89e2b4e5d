# SPDX-License-Identifier: Apache-2.0
"""What Spark's own plan of a frame tells before a row is read; Spark Connect shows no plans."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
import re
from typing import Any
from urllib.parse import unquote, urlsplit

from py4j.java_gateway import JavaClass
from pyspark.sql import DataFrame, SparkSession

from spark_offload.cluster.machines import is_connect

__all__ = [
    "NO_ESTIMATE",
    "ParquetRead",
    "analysed",
    "children",
    "delaying_operator",
    "estimated_bytes",
    "estimated_rows",
    "has_python_function",
    "is_filtered_read",
    "is_plain_read",
    "kind_of",
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


def kind_of(node: Any) -> str:
    """Return the name of the class of a node, such as ``EqualTo``."""
    return str(node.getClass().getSimpleName())


def has_python_function(node: Any) -> bool:
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


def is_plain_read(frame: DataFrame) -> bool:
    """Whether a frame is no more than a source, and columns computed from those of each row.

    To read it takes far less time than to join it. Filters do not count as plain, since they may
    leave few rows of very many.
    """
    if is_connect(frame):
        return False
    plan = analysed(frame)
    if has_python_function(plan) or not _is_plain(plan):
        return False
    if frame._jdf.sparkSession().sharedState().cacheManager().isEmpty():
        return True
    # What is cached is computed when it is first read. A frame keeps the plan that it was first
    # used with, and may have been cached since; under another name it gets a plan anew.
    return _is_plain(_optimized(frame.alias("now")))


def is_filtered_read(frame: DataFrame) -> bool:
    """Whether a frame is a source, columns computed from those of each row, and filters."""
    if is_connect(frame):
        return False
    plan = analysed(frame)
    return not has_python_function(plan) and _is_plain(plan, {*PASSING, "Filter"})


@dataclass(frozen=True)
class ParquetRead:
    """Parquet files on paths that all machines have, and the columns of them that a frame has.

    Parameters
    ----------
    files : tuple of str
        Paths of the files, by name.
    columns : tuple of str
        Names in the files of the columns of the frame.
    """

    files: tuple[str, ...]
    columns: tuple[str, ...]


def parquet_read(frame: DataFrame) -> ParquetRead | str:
    """Return what a frame reads, if it is nothing but columns of Parquet files, else why not."""
    if is_connect(frame):
        return "is a frame of Spark Connect, which shows no plans"
    if not is_plain_read(frame):
        return "is more than a read of files"
    node = analysed(frame)
    wanted = [_attribute(column) for column in _items(node.output())]
    while kind_of(node) in PASSING:
        if kind_of(node) == "Project":
            below = {}
            for item in _items(node.projectList()):
                source = item.child() if kind_of(item) == "Alias" else item
                if kind_of(source) == "AttributeReference":
                    below[_attribute(item)] = _attribute(source)
            if not set(wanted) <= set(below):
                return "has columns that are computed"
            wanted = [below[column] for column in wanted]
        node = node.child()
    if kind_of(node) != "LogicalRelation" or kind_of(node.relation()) != "HadoopFsRelation":
        return "is no read of files"
    relation = node.relation()
    names = {_attribute(column): str(column.name()) for column in _items(node.output())}
    options = {str(option) for option in _items(relation.options().keys().toSeq())}
    session = frame.sparkSession
    skipping = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
    if kind_of(relation.fileFormat()) != "ParquetFileFormat":
        return "is no read of Parquet files"
    if relation.partitionSchema().length() or not relation.bucketSpec().isEmpty():
        return "is a read of folders with keys, or of buckets"
    if options - {"path", "paths"} or any(session.conf.get(name) == "true" for name in skipping):
        return "is read with options that Spark alone knows"
    addresses = [urlsplit(address) for address in frame.inputFiles()]
    if any(address.scheme != "file" for address in addresses):
        return "has files that are not on a path of the machines"
    files = sorted(unquote(address.path) for address in addresses)
    return ParquetRead(tuple(files), tuple(names[column] for column in wanted))


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
    while kind_of(node) in passing:
        node = node.child()
    return kind_of(node) in SOURCES


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
