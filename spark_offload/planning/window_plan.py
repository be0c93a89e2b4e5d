# SPDX-License-Identifier: Apache-2.0
"""The join over a window as a plan: its question to Spark itself, its size and its cost."""

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from host import Manifest
from host.query.queries import JoinQuery
from spark_offload.own_join.question import own_join
from spark_offload.planning.cost import InputSize, estimate_cost, join_size
from spark_offload.planning.explanation import Explanation
from spark_offload.planning.inputs import JoinInputs
from spark_offload.planning.plan import JoinPlan
from spark_offload.planning.profile import OrderProfile

__all__ = ["WindowPlan"]


@dataclass(frozen=True, kw_only=True)
class WindowPlan(JoinPlan):
    """A join over a window that is ready to run."""

    query: JoinQuery

    def estimated(self, *, count: bool = False) -> Explanation:
        inputs = JoinInputs(self.left, self.right, self.query)
        return self._estimated(inputs.profile() if count else None)

    def own_answer(self, left: DataFrame, right: DataFrame) -> DataFrame:
        return own_join(left, right, self.query)

    def _estimated(
        self,
        profile: OrderProfile | None,
        *,
        manifest: Manifest | None = None,
        devices: int = 1,
    ) -> Explanation:
        """Return the explanation with sizes and cost, from how the rows lie in time, if known."""
        inputs = JoinInputs(self.left, self.right, self.query)
        size = None if profile is None else join_size(self.query, profile, inputs.facts().width)
        return replace(
            self.explanation,
            inputs=InputSize(None if profile is None else profile.rows, inputs.known_bytes()),
            cost=estimate_cost(self.left, self.right, self.query, manifest, size, devices),
        )
