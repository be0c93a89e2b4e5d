# SPDX-License-Identifier: Apache-2.0
"""What the plans of all joins of streams have in common."""

from collections.abc import Mapping
from dataclasses import dataclass

from host import UsageError
from spark_offload.measures.metrics import JoinMetrics
from spark_offload.planning.explanation import Explanation
from spark_offload.planning.plan import JoinPlan

__all__ = ["GroupedPlan"]


@dataclass(frozen=True, kw_only=True)
class GroupedPlan(JoinPlan):
    """A join of streams that is ready to run, group by group.

    Parameters
    ----------
    groups : tuple of int
        Keys of the groups of rows; empty: one for each partition of the state.
    name : str
        Under which the progress of a query has the numbers of this join.
    question : mapping of str to str
        What must stay the same for as long as a checkpoint is used.
    """

    groups: tuple[int, ...]
    name: str
    question: Mapping[str, str]

    def estimated(self, *, count: bool = False) -> Explanation:
        """Return the explanation; a stream has no size before it runs."""
        return self.explanation

    def metrics(self) -> JoinMetrics:
        """Raise: a streaming join is measured by the query that runs it, not by its frame."""
        raise UsageError(
            "A streaming frame has no metrics before a query runs it; read "
            "spark_offload.stream_metrics(query), query being what start() returned."
        )
