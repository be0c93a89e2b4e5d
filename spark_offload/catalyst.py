# SPDX-License-Identifier: Apache-2.0
"""Trees of Spark's query compiler in the JVM: plans of frames, and expressions.

Spark Connect does not show them to programs.
"""

from collections.abc import Iterator
from typing import Any

from py4j.java_gateway import JavaClass
from pyspark.sql import DataFrame

__all__ = ["analysed", "children", "has_python_function", "kind_of"]

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
