# SPDX-License-Identifier: Apache-2.0
"""Aggregates of the matches of each left row as a plan: of pairs, or by a join aggregate."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from host import UsageError
from host.errors import AcceleratorLimitError, UnsupportedTypeError
from host.operators.matches import require_matches
from host.protocol.manifest import JoinAggregateManifest
from host.query.queries import Aggregate, JoinQuery
from spark_offload.cluster.machines import cluster_of, ship_bundle, ship_packages
from spark_offload.explanation.explanations import Explanation, TermExplanation
from spark_offload.measures import JoinMetrics
from spark_offload.partitioning.columns import arrow_schema, find_column
from spark_offload.plan.accelerator import SOFTWARE, Choice, QueryCheck, check_query, require_window
from spark_offload.plan.inputs import JoinInputs
from spark_offload.plan.join import BatchJoinPlan
from spark_offload.plan.plan import JoinPlan, Plan
from spark_offload.task.matches import MatchTask, match_function
from spark_offload.verification.own_operators import aggregated

__all__ = [
    "DeviceMatchesPlan",
    "JoinAggregatePlan",
    "answer_schema",
    "check_aggregates",
    "check_matches",
    "explained",
    "make_device_matches_plan",
    "make_join_aggregate_plan",
    "numbered",
]

# Aggregates of the matches of each left row as a plan: a left outer join, reduced by its rows.
#
# Left rows are numbered before the join. The pairs that a task finds go to Spark's own
# aggregation beside it, which reduces them before anything is sent to another machine.

_NUMBER, _MATCH = "number of the left row", "match"
"""Columns that are added to the left and to the right rows."""


@dataclass(frozen=True, kw_only=True)
class JoinAggregatePlan(Plan):
    """Aggregates of matches that are ready to be computed.

    Parameters
    ----------
    join : JoinPlan
        The left outer join of the :func:`numbered` rows.
    aggregates : mapping of str to Aggregate
        What is computed of the right rows, by the name of its column.
    left : DataFrame
        The left rows as given.
    schema : StructType
        Columns of the answer.
    explanation : Explanation
        Where the join runs and why.
    """

    join: JoinPlan
    aggregates: Mapping[str, Aggregate]
    left: DataFrame
    schema: StructType
    explanation: Explanation

    def estimated(self, *, count: bool = False) -> Explanation:
        """Return the explanation of the join, with its size and cost where they are known."""
        explanation = self.join.estimated(count=count)
        assert isinstance(explanation, Explanation)
        return explained(explanation, self.aggregates, self.schema, self.explanation.ordering)

    def own_answer(self) -> DataFrame:
        """Return the answer by Spark itself, in no order."""
        pairs = self.join.own_answer(self.join.left, self.join.right)
        return _reduced(pairs, self.join, self.aggregates)

    def _run(self) -> tuple[DataFrame, Callable[[], JoinMetrics]]:
        answer = _reduced(self.join.dataframe(), self.join, self.aggregates)
        return answer, self.join.metrics


def check_aggregates(
    left: DataFrame, right: DataFrame, aggregates: Mapping[str, Aggregate]
) -> None:
    """Raise unless the aggregates have columns, and names that no left column has.

    Raises
    ------
    UsageError
        If not.
    """
    if not aggregates:
        raise UsageError("Matches need at least one aggregate, such as aggregates={'n': 'count'}.")
    for name, one in aggregates.items():
        if name in left.columns:
            raise UsageError(
                f"An aggregate cannot be called {name!r}, as a left column is; choose another name."
            )
        if one.column is not None:
            find_column(right.schema, one.column, "right")


def numbered(left: DataFrame, right: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return both inputs with a column more: the number of a left row, and that one is a match."""
    for frame, name in ((left, _NUMBER), (right, _MATCH)):
        if name in frame.columns:
            raise UsageError(f"A column called {name!r} cannot be here; give it another name.")
    return (
        left.select("*", F.monotonically_increasing_id().alias(_NUMBER)),
        right.select("*", F.lit(True).alias(_MATCH)),
    )


def make_join_aggregate_plan(
    left: DataFrame, join: JoinPlan, aggregates: Mapping[str, Aggregate]
) -> JoinAggregatePlan:
    """Return the plan of aggregates of matches.

    Parameters
    ----------
    left : DataFrame
        The left rows as given.
    join : JoinPlan
        The left outer join of the :func:`numbered` rows.
    aggregates : mapping of str to Aggregate
        What :func:`check_aggregates` has let pass.
    """
    schema = answer_schema(join, aggregates)
    explanation = explained(join.explanation, aggregates, schema, "in no order")
    return JoinAggregatePlan(
        join=join, aggregates=aggregates, left=left, schema=schema, explanation=explanation
    )


def answer_schema(join: JoinPlan, aggregates: Mapping[str, Aggregate]) -> StructType:
    """Return the columns of the answer; raises if Spark cannot compute an aggregate of them."""
    empty = join.left.sparkSession.createDataFrame([], join.schema)  # no join is run for it
    return _reduced(empty, join, aggregates).schema


def explained(
    explanation: Explanation,
    aggregates: Mapping[str, Aggregate],
    schema: StructType,
    ordering: str,
) -> Explanation:
    """Return the explanation of a join as that of aggregates of its matches.

    Parameters
    ----------
    explanation : Explanation
        Of the join.
    aggregates : mapping of str to Aggregate
        What is computed.
    schema : StructType
        Columns of the answer.
    ordering : str
        In which order the left rows come.
    """
    values = ", ".join(f"{name} = {one}" for name, one in aggregates.items())
    return replace(
        explanation,
        join=f"every left row once, with {values} of its matches",
        ordering=ordering,
        columns=tuple(schema.names),
    )


def _reduced(pairs: DataFrame, join: JoinPlan, aggregates: Mapping[str, Aggregate]) -> DataFrame:
    """Return a row for each left row, from the rows of the left outer join."""
    own, other = join.left.columns, join.right.columns
    # Positions as names: no name of the user's can clash or need quoting.
    lefts = {name: f"l{at}" for at, name in enumerate(own)}
    rights = {name: f"r{at}" for at, name in enumerate(other)}
    places = pairs.toDF(*lefts.values(), *rights.values())
    row = F.struct(*(F.col(lefts[name]) for name in own if name != _NUMBER))
    # Right columns are null where a left row comes alone.
    values = [
        aggregated(one.function, F.col(rights[one.column or _MATCH])).alias(f"v{at}")
        for at, one in enumerate(aggregates.values())
    ]
    grouped = places.groupBy(lefts[_NUMBER]).agg(F.first(row).alias("row"), *values)
    return grouped.select(
        *(F.col("row")[lefts[name]].alias(name) for name in own if name != _NUMBER),
        *(F.col(f"v{at}").alias(name) for at, name in enumerate(aggregates)),
    )


# Aggregates of matches on join aggregates: no task sees a pair, and nothing is reduced twice.
#
# Each left row is answered for by one task, which has all right rows that it may match: those of
# its keys, or those of the range of time in which it leaves the window, with the halo of that
# range.

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
