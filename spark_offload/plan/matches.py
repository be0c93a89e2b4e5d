# SPDX-License-Identifier: Apache-2.0
"""Aggregates of the matches of each left row as a plan: of pairs, or by a join aggregate."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from host import UsageError
from host.errors import AcceleratorLimitError, UnsupportedTypeError
from host.operators.matches import require_matches, require_names
from host.protocol.manifest import JoinAggregateManifest
from host.query.queries import Aggregate, Query
from spark_offload.explanation import Explanation, TermExplanation
from spark_offload.partitioning.columns import find_column
from spark_offload.plan.accelerator import (
    Choice,
    QueryCheck,
    check_query,
    explained_fields,
    require_window,
)
from spark_offload.plan.join import JoinInputs, OnDevices
from spark_offload.plan.plan import Plan
from spark_offload.task.join import MatchTask
from spark_offload.task.task import Answer
from spark_offload.verification.own_queries import aggregated

__all__ = [
    "make_matches_plan",
]

# Aggregates of the matches of each left row as a plan: a left outer join, reduced by its rows.
#
# Left rows are numbered before the join. The pairs that a task finds go to Spark's own
# aggregation beside it, which reduces them before anything is sent to another machine.

_NUMBER, _MATCH = "number of the left row", "match"
"""Columns that are added to the left and to the right rows."""

_EXACT = "the values of each piece of rows, or codes of them; exact"
_OTHER_DEVICE = "or use a device of pairs, such as 'software:'"


def make_matches_plan(
    left: DataFrame,
    right: DataFrame,
    aggregates: Mapping[str, Aggregate],
    plan_pairs: Callable[..., Plan],
    *,
    strict: bool,
) -> Plan:
    """Return the plan of aggregates of matches, by join aggregates if those are the devices.

    Parameters
    ----------
    left, right : DataFrame
        The rows.
    aggregates : mapping of str to Aggregate
        What is computed of the right rows.
    plan_pairs : callable
        Plans the left outer join of frames with a column more: the number of a left row, and that
        one is a match; takes the check of a query for its devices, too, as ``check``.
    strict : bool
        Whether it is an error that an accelerator cannot take a row, for which otherwise software
        answers.

    Raises
    ------
    UsageError
        If an aggregate lacks its column, or has the name of a left one; or if the latency of pairs
        is asked for of a join aggregate, which sends none.
    """
    _require_aggregates(left, right, aggregates)
    join = plan_pairs(
        left.select("*", F.monotonically_increasing_id().alias(_NUMBER)),
        right.select("*", F.lit(True).alias(_MATCH)),
        check=_check_matches(aggregates),
    )
    # Raises if Spark cannot compute an aggregate. No join is run for it.
    empty = left.sparkSession.createDataFrame([], join.schema)
    schema = _reduced(empty, join, aggregates).schema
    pairs = join.strategy
    reducing = pairs if isinstance(pairs, OnDevices) and pairs.choice.reduces else None
    ordering = "in no order"
    if reducing is not None:
        if reducing.options.trace:
            raise UsageError(
                "trace has no meaning for a join aggregate, which sends no pairs; leave it out, "
                f"{_OTHER_DEVICE}."
            )
        ordering = reducing.placement.ordering(f"by left {reducing.query.time[0]!r}")

    values = ", ".join(f"{name} = {one}" for name, one in aggregates.items())

    def explained(found: Explanation) -> Explanation:
        """Return the explanation of the join as that of aggregates of its matches."""
        return replace(
            found,
            join=f"every left row once, with {values} of its matches",
            ordering=ordering,
            columns=tuple(schema.names),
        )

    def sized(_: Plan, count: bool) -> Explanation:
        found = explained(join.estimated(count=count))
        if reducing is None or found.cost is None:
            return found
        columns = {one.column for one in aggregates.values() if one.column is not None}
        return replace(found, cost=found.cost.of_columns(len(columns), reducing.choice.manifest))

    def own(*_: DataFrame) -> DataFrame:
        return _reduced(join.own_answer(), join, aggregates)

    def answered(plan: Plan) -> Answer:
        """Reduce pairs; or let join aggregates do it: no task sees a pair, and none does it again.

        Each left row is then answered for by one task, which has all right rows that it may match:
        those of its keys, or those of the range of time in which it leaves the window, with the
        halo of that range. The join itself is not run.
        """
        if reducing is None:
            return _reduced(join.dataframe(), join, aggregates), join.metrics
        width = JoinInputs(left, right, reducing.query).facts().width
        return reducing.answer(plan, MatchTask, not strict, aggregates=aggregates, width=width)

    return Plan(
        query=join.query,
        inputs=(left, right),
        schema=schema,
        explanation=explained(join.explanation),
        strategy=answered,
        own=own,
        sized=sized,
        keys=len(left.columns),
        manifest=join.manifest,
    )


def _require_aggregates(
    left: DataFrame, right: DataFrame, aggregates: Mapping[str, Aggregate]
) -> None:
    """Raise unless the aggregates have columns, and names that no left column has."""
    require_names(aggregates, left.columns)
    for one in aggregates.values():
        if one.column is not None:
            find_column(right.schema, one.column, "right")
    for frame, name in ((left, _NUMBER), (right, _MATCH)):
        if name in frame.columns:
            raise UsageError(f"A column called {name!r} cannot be here; give it another name.")


def _reduced(pairs: DataFrame, join: Plan, aggregates: Mapping[str, Aggregate]) -> DataFrame:
    """Return a row for each left row, from the rows of the left outer join."""
    own, other = (frame.columns for frame in join.inputs)
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


def _check_matches(aggregates: Mapping[str, Aggregate]) -> QueryCheck:
    """Return what checks a query for an accelerator of pairs, or for one that reduces matches.

    Parameters
    ----------
    aggregates : mapping of str to Aggregate
        What is computed of the right columns.
    """

    def check(
        query: Query, choice: Choice, left: pa.Schema, right: pa.Schema
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
        return tuple(explained_fields(encoded.plan.fields, _EXACT))

    return check
