# SPDX-License-Identifier: Apache-2.0
"""Two Arrow tables joined through Spark into one, in the order of arrival."""

from dataclasses import dataclass, replace
import time

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import SparkSession

from host import Arrivals, Manifest
from host.cli.status import Status
from host.device.software import SOFTWARE_MANIFEST
from host.encode import encode
from host.query.join_query import JoinQuery
from host.query.tables import output_schema
from host.reference.join_type import NO_ROW
from host.reference.types import strict_order
from spark_offload.cli.spark_tables import frame_of_table
from spark_offload.failures.translation import kit_errors
from spark_offload.planning.batch_plan import BatchJoinPlan, make_plan
from spark_offload.session.progress import show_progress

__all__ = ["ArrivalOrder", "TableAnswer", "join_tables_in_spark", "plan_tables"]

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TableAnswer:
    """What joining two tables through Spark gave.

    Parameters
    ----------
    table : pa.Table
        The answer in the order of arrival, with the types of the inputs.
    pairs : tuple of array of int64
        Row of the left table, and of the right one, of every result; -1 for no row.
    plan : BatchJoinPlan
        The plan that ran, with its metrics.
    seconds : float
        From the call of Spark's action until the rows were in this process.
    """

    table: pa.Table
    pairs: tuple[Int64s, Int64s]
    plan: BatchJoinPlan
    seconds: float


class ArrivalOrder:
    """The order in which the rows of two tables arrive, and so that of the results of their join.

    This reads the columns that are compared and ordered by, so it also meets bad values before
    Spark is started.

    Parameters
    ----------
    left, right : pa.Table
        The tables.
    query : JoinQuery
        What is joined.

    Raises
    ------
    UsageError
        If a column, its type or its values will not do.
    """

    def __init__(self, left: pa.Table, right: pa.Table, query: JoinQuery) -> None:
        encoded = encode(left, right, query, Manifest.load(SOFTWARE_MANIFEST))
        sides = (encoded.left, encoded.right)
        self._arrivals = Arrivals.merge(
            {"row": sides[0].row},  # nothing is said about keys
            {"row": sides[1].row},
            sides[0].timestamp,
            sides[1].timestamp,
        )
        self._window = encoded.window
        self._numbers = []  # by table and row: its place among the rows of its side that arrive
        for table, side in zip((left, right), sides, strict=True):
            numbers = np.full(table.num_rows + 1, NO_ROW, np.int64)  # the last one: of no row
            numbers[side.row] = np.arange(len(side))
            self._numbers.append(numbers)

    def of_results(self, left: Int64s, right: Int64s) -> Int64s:
        """Return the strict order of results, given by their rows, as a permutation."""
        tuples = [own[rows] for own, rows in zip(self._numbers, (left, right), strict=True)]
        return strict_order(self._arrivals, self._window, tuples[0], tuples[1])


def plan_tables(
    spark: SparkSession,
    left: pa.Table,
    right: pa.Table,
    query: JoinQuery,
    *,
    device: str | None = None,
    trace: bool = False,
    progress: str | None = None,
    build: bool = False,
) -> BatchJoinPlan:
    """Return the plan of the join of two tables; a last column of each numbers its rows."""
    tables = [
        table.append_column(name, pa.array(np.arange(table.num_rows)))
        for table, name in zip((left, right), _row_names(left, right), strict=True)
    ]
    frames = [
        frame_of_table(spark, table, f"the {side} input")
        for table, side in zip(tables, ("left", "right"), strict=True)
    ]
    plan = make_plan(
        frames[0],
        frames[1],
        query,
        device=device,
        trace=trace,
        progress=progress,
        build=build,
        strict=True,
    )
    names = output_schema(left.schema, right.schema, query.suffix, query.how).names
    return replace(plan, explanation=replace(plan.explanation, columns=tuple(names)))


def join_tables_in_spark(
    spark: SparkSession,
    left: pa.Table,
    right: pa.Table,
    query: JoinQuery,
    *,
    device: str | None = None,
    trace: bool = False,
    status: Status | None = None,
    build: bool = False,
) -> TableAnswer:
    """Run the join of two tables through Spark and gather the answer.

    Parameters
    ----------
    spark : SparkSession
        Where.
    left, right : pa.Table
        The tables.
    query : JoinQuery
        What is joined.
    device : str, optional
        On what; see :func:`~spark_offload.stream_join`.
    trace : bool
        Whether to measure the latency of every result.
    status : Status, optional
        Where to show how far it is.
    build : bool
        Whether a larger bundle is built if need be.

    Raises
    ------
    JoinError
        If the query will not do, or a task failed; an error inside a task arrives as itself.
    """
    schema = output_schema(left.schema, right.schema, query.suffix, query.how)
    arrival = ArrivalOrder(left, right, query)
    status = Status("join", shown=False) if status is None else status
    with show_progress(status, spark, left.num_rows + right.num_rows) as folder:
        plan = plan_tables(
            spark,
            left,
            right,
            query,
            device=device,
            trace=trace,
            progress=folder,
            build=build,
        )
        started = time.perf_counter()
        with kit_errors():
            answer = plan.dataframe().toArrow()
        seconds = time.perf_counter() - started
    numbering = [left.num_columns, *([answer.num_columns - 1] if query.how.has_pairs else [])]
    rows = [_row_numbers(answer, column) for column in numbering]
    pairs = rows[0], rows[1] if query.how.has_pairs else np.full_like(rows[0], NO_ROW)
    if not plan.follows_time:
        # Each partition is in order of arrival; the whole is, after this.
        with status.stage("putting the results in order"):
            order = arrival.of_results(*pairs)
            answer = answer.take(pa.array(order))
            pairs = pairs[0][order], pairs[1][order]
    columns = [column for index, column in enumerate(answer.columns) if index not in numbering]
    table = pa.Table.from_arrays(
        [_restored(column, field) for column, field in zip(columns, schema, strict=True)],
        schema=schema,
    )
    return TableAnswer(table, pairs, plan, seconds)


def _row_names(left: pa.Table, right: pa.Table) -> tuple[str, str]:
    """Return two column names that no table has, whatever the case."""
    taken = {name.casefold() for name in (*left.column_names, *right.column_names)}
    prefix = "row"
    while any(name.startswith(prefix) for name in taken):
        prefix = f"_{prefix}"
    return f"{prefix}_left", f"{prefix}_right"


def _row_numbers(answer: pa.Table, column: int) -> Int64s:
    numbers: Int64s = answer.column(column).fill_null(NO_ROW).to_numpy()
    return numbers


def _restored(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Return a column with the type it had before Spark, which lacks some."""
    if column.type == field.type:
        return column
    if pa.types.is_dictionary(field.type):
        return column.cast(field.type.value_type).dictionary_encode().cast(field.type)
    return column.cast(field.type)
