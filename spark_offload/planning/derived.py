# SPDX-License-Identifier: Apache-2.0
"""Find the joins behind a frame in Spark's plan of it.

Spark gives every column that an operator makes a number of its own, and operators behind it keep
the number. So a join is known again by the number of its first column.
"""

from collections.abc import Iterator
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from pyspark.sql import DataFrame

from spark_offload.catalyst import analysed, children
from spark_offload.cluster import is_connect

__all__ = ["JoinsByColumn"]

Plan = TypeVar("Plan")


class JoinsByColumn(Generic[Plan]):
    """Plans of joins by the number of the first column of their answers.

    A plan is forgotten when nobody else holds it. Spark Connect does not show plans, so nothing is
    kept there, and nothing found.
    """

    def __init__(self) -> None:
        self._plans: WeakValueDictionary[str, Plan] = WeakValueDictionary()

    def note(self, frame: DataFrame, plan: Plan) -> None:
        """Remember that ``frame`` is the answer of ``plan``."""
        if not is_connect(frame):
            number = _first_column(analysed(frame))
            if number is not None:
                self._plans[number] = plan

    def behind(self, frame: DataFrame) -> list[Plan]:
        """Return the plans of the joins that a frame is derived from, the last join first."""
        found: list[Plan] = []
        if is_connect(frame):
            return found
        for node in _nodes(analysed(frame)):
            plan = self._plans.get(_first_column(node) or "")
            if plan is not None and all(plan is not other for other in found):
                found.append(plan)
        return found


def _nodes(node: Any) -> Iterator[Any]:
    """Yield a node of a plan and all below it, level by level."""
    level = [node]
    while level:
        yield from level
        level = [child for one in level for child in children(one)]


def _first_column(node: Any) -> str | None:
    """Return the number of the first column of a node; None if it has none that is resolved."""
    output = node.output()
    return str(output.apply(0).exprId()) if output.size() else None
