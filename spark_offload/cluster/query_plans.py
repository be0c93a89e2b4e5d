# SPDX-License-Identifier: Apache-2.0
"""What Spark's own plan of a frame tells before a row is read; Spark Connect shows no plans."""

from collections.abc import Collection, Iterator
import re
from typing import Any

from py4j.java_gateway import JavaClass
from pyspark.sql import DataFrame, SparkSession

from spark_offload.cluster.machines import is_connect

__all__ = [
    "NO_ESTIMATE",
    "analysed",
    "children",
    "delaying_operator",
    "estimated_bytes",
    "estimated_rows",
    "has_python_function",
    "is_filtered_read",
    "is_plain_read",
    "kind_of",
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
