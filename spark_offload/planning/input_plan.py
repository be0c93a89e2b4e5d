# SPDX-License-Identifier: Apache-2.0
"""What Spark's plan of an input tells before a row is read. Spark Connect does not show plans."""

from typing import Any

from pyspark.sql import DataFrame

from spark_offload.catalyst import analysed, has_python_function, kind_of
from spark_offload.cluster import is_connect

__all__ = ["NO_ESTIMATE", "estimated_bytes", "estimated_rows", "is_plain_read"]

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


def _is_plain(node: Any) -> bool:
    while kind_of(node) in PASSING:
        node = node.child()
    return kind_of(node) in SOURCES


def _optimized(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().optimizedPlan()
