# SPDX-License-Identifier: Apache-2.0
"""Aggregates of the matches of each left row as a plan: a left outer join, reduced by its rows.

Left rows are numbered before the join. The pairs that a task finds go to Spark's own aggregation
beside it, which reduces them before anything is sent to another machine.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from host import UsageError
from host.query.queries import Aggregate
from spark_offload.layout.columns import find_column
from spark_offload.measures.metrics import JoinMetrics
from spark_offload.own_join.aggregate import aggregated
from spark_offload.planning.explanation import Explanation
from spark_offload.planning.plan import JoinPlan, Plan

__all__ = [
    "JoinAggregatePlan",
    "answer_schema",
    "check_aggregates",
    "explained",
    "make_join_aggregate_plan",
    "numbered",
]

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
