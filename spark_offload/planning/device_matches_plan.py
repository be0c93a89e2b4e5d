# SPDX-License-Identifier: Apache-2.0
"""Aggregates of matches on join aggregates: no task sees a pair, and nothing is reduced twice.

Each left row is answered for by one task, which has all right rows that it may match: those of its
keys, or those of the range of time in which it leaves the window, with the halo of that range.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from host import UsageError
from host.errors import AcceleratorLimitError, UnsupportedTypeError
from host.operators.matches import require_matches
from host.protocol.manifest import JoinAggregateManifest
from host.query.queries import Aggregate, JoinQuery
from spark_offload.cluster import cluster_of
from spark_offload.cluster.shipping import ship_bundle, ship_packages
from spark_offload.layout.columns import arrow_schema
from spark_offload.measures.metrics import JoinMetrics
from spark_offload.planning.accelerator import (
    SOFTWARE,
    Choice,
    QueryCheck,
    check_query,
    require_window,
)
from spark_offload.planning.batch_plan import BatchJoinPlan
from spark_offload.planning.explanation import Explanation, TermExplanation
from spark_offload.planning.inputs import JoinInputs
from spark_offload.planning.join_aggregate_plan import (
    JoinAggregatePlan,
    answer_schema,
    explained,
)
from spark_offload.tasks.match_task import MatchTask, match_function

__all__ = ["DeviceMatchesPlan", "check_matches", "make_device_matches_plan"]

_EXACT = "the values of each piece of rows, or codes of them; exact"
_OTHER_DEVICE = "or use a device of pairs, such as 'software:'"


@dataclass(frozen=True, kw_only=True)
class DeviceMatchesPlan(JoinAggregatePlan):
    """Aggregates of matches that accelerators reduce.

    Parameters
    ----------
    join : BatchJoinPlan
        The left outer join of the numbered rows that has the same answer; it is not run.
    right : DataFrame
        The right rows as given.
    goes_on : bool
        Whether software answers for rows that the accelerator cannot take.
    """

    join: BatchJoinPlan
    right: DataFrame
    goes_on: bool

    def estimated(self, *, count: bool = False) -> Explanation:
        found = super().estimated(count=count)
        assert found.cost is not None
        columns = {one.column for one in self.aggregates.values() if one.column is not None}
        cost = found.cost.of_columns(len(columns), self.join.choice.manifest)
        return replace(found, cost=cost)

    def _run(self) -> tuple[DataFrame, Callable[[], JoinMetrics]]:
        join = self.join
        cluster = cluster_of(self.left.sparkSession)
        ship_packages(cluster)
        report, read = cluster.gather_tasks()
        inputs = JoinInputs(self.left, self.right, join.query)
        tagged = inputs.tagged(join.placement)
        task = MatchTask(
            query=join.query,
            aggregates=self.aggregates,
            devices=join.choice.source.shipped(cluster),
            left=arrow_schema(self.left.schema, "left"),
            right=arrow_schema(self.right.schema, "right"),
            output=arrow_schema(self.schema, "output"),
            progress=join.progress,
            halos=tagged.halos,
            width=inputs.facts().width,
            software=ship_bundle(cluster, SOFTWARE) if self.goes_on else None,
        )
        function = match_function(task, self.explanation.name, report)
        answer = join.checked(tagged.frame.mapInArrow(function, self.schema))
        manifest = join.choice.manifest
        return answer, lambda: read().on_hardware(manifest)


def make_device_matches_plan(
    left: DataFrame,
    right: DataFrame,
    join: BatchJoinPlan,
    aggregates: Mapping[str, Aggregate],
    *,
    goes_on: bool,
) -> DeviceMatchesPlan:
    """Return the plan of aggregates of matches that join aggregates reduce.

    Parameters
    ----------
    left, right : DataFrame
        The rows as given.
    join : BatchJoinPlan
        The left outer join of the numbered rows, with a query that :func:`check_matches` has let
        pass.
    aggregates : mapping of str to Aggregate
        What is computed of the right columns.
    goes_on : bool
        Whether software answers for rows that the accelerator cannot take.

    Raises
    ------
    UsageError
        If the latency of pairs is asked for.
    """
    if join.trace:
        raise UsageError(
            "trace has no meaning for a join aggregate, which sends no pairs; leave it out, "
            f"{_OTHER_DEVICE}."
        )
    schema = answer_schema(join, aggregates)
    over = ", over all partitions" if join.follows_time else ""
    where = "" if join.follows_time else "in each partition "
    ordering = f"{where}by left {join.query.order[0]!r}{over}"
    explanation = explained(join.explanation, aggregates, schema, ordering)
    return DeviceMatchesPlan(
        join=join,
        aggregates=aggregates,
        left=left,
        right=right,
        schema=schema,
        explanation=explanation,
        goes_on=goes_on,
    )


def check_matches(aggregates: Mapping[str, Aggregate]) -> QueryCheck:
    """Return what checks a query for an accelerator of pairs, or for one that reduces matches.

    Parameters
    ----------
    aggregates : mapping of str to Aggregate
        What is computed of the right columns.
    """

    def check(
        query: JoinQuery, choice: Choice, left: pa.Schema, right: pa.Schema
    ) -> tuple[TermExplanation, ...]:
        manifest = choice.manifest
        if not isinstance(manifest, JoinAggregateManifest):
            return check_query(query, choice, left, right)
        if query.elastic is not None:
            raise AcceleratorLimitError(
                "No controller chooses the cores of a join aggregate",
                f"leave elastic out, {_OTHER_DEVICE}",
            )
        require_window(query, choice)
        try:
            encoded = require_matches(left, right, query, aggregates, manifest)
        except UnsupportedTypeError as error:
            if error.column not in {one.column for one in aggregates.values()}:
                raise  # it cannot be compared, by whatever device
            raise AcceleratorLimitError(
                f"Values of type {error.type_name} in column {error.column!r} are not aggregated "
                f"by an accelerator",
                f"cast it to one of: {error.supported}; {_OTHER_DEVICE}",
            ) from error
        return tuple(
            TermExplanation(
                ", ".join(str(term.term) for term in field.terms),
                f"key field {field.name!r}",
                _EXACT,
            )
            for field in encoded.fields
        )

    return check
