# SPDX-License-Identifier: Apache-2.0
"""Operators before a streaming join that hold rows back; it would take these for late."""

from typing import Any

from pyspark.sql import DataFrame

from spark_offload.catalyst import analysed, children
from spark_offload.cluster import is_connect

__all__ = ["delaying_operator"]

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
