# SPDX-License-Identifier: Apache-2.0

from hypothesis import given, settings
from hypothesis import strategies as st
import pyarrow as pa
import pytest

from host.errors import OrderError, UsageError
from host.operators.aggregate import WindowAggregation
from host.pipeline import Flag, Pipeline
from host.query.queries import AggregateQuery
from tests.host.operators.by_rows import SCHEMA, tables

ASKED = AggregateQuery(
    time="time", window=6, advance=2, on=("item",),
    aggregates={"n": "count", "total": "sum:price"},
)  # fmt: skip


def expected(table):
    work = WindowAggregation(SCHEMA, ASKED)
    for batch in table.to_batches():
        work.more_rows(batch)
    return work.last_rows().to_pylist()


@settings(max_examples=30)
@given(tables(), st.integers(1, 9), st.booleans())
def test_a_pipeline_aggregates_what_it_is_given(table, rows, is_sorted):
    table = table.sort_by("time") if is_sorted else table
    known = ["time"] if is_sorted else []
    streams = []
    pipeline = (
        Pipeline.of_table(table, sorted_by=known)
        .batch_rows(rows)
        .filter(lambda time: pa.compute.less(time, 30))
        .aggregate(ASKED, started=streams.append)
    )
    kept = table.filter(pa.compute.less(table["time"], 30))
    for _ in range(2):
        result = pipeline.collect()
        assert result.to_pylist() == expected(kept)
        work = streams[-1].work
        assert (work.rows, work.results, work.held) == (kept.num_rows, result.num_rows, 0)
    assert len(streams) == 2


def test_results_of_sorted_rows_leave_while_more_rows_come():
    table = pa.table(
        {"time": range(1000), "item": pa.array([1] * 1000, pa.int8()), "price": [1] * 1000}
    )
    streams = []
    pipeline = Pipeline.of_table(table, sorted_by=["time"]).batch_rows(16)
    batches = pipeline.aggregate(ASKED, started=streams.append).batches()
    first = next(batches)
    assert first.column("window_end")[0].as_py() == 2
    assert streams[-1].work.rows < 1000
    assert streams[-1].work.held <= 6
    batches.close()


def test_the_plan_says_how_and_what_is_known_of_the_result():
    table = pa.Table.from_pylist([], SCHEMA)
    plain, in_order = Pipeline.of_table(table), Pipeline.of_table(table, sorted_by=["time"])
    assert "results leave at the end" in plain.aggregate(ASKED).explain()
    assert "leave as windows end: its input is SORTED" in in_order.aggregate(ASKED).explain()
    traits = in_order.aggregate(ASKED).execution().traits
    assert traits.has(Flag.SORTED | Flag.DISTINCT)
    assert not traits.has(Flag.SIZED)
    assert traits.distinct_by == ("window_start", "item")
    assert traits.is_sorted_by(("window_start", "window_end"))


def test_wrong_pipelines_are_refused():
    table = pa.Table.from_pylist([{"time": 2}, {"time": 1}], SCHEMA)
    with pytest.raises(OrderError, match="row 1"):
        Pipeline.of_table(table, sorted_by=["time"]).aggregate(ASKED).collect()
    with pytest.raises(UsageError, match="There is no column 'item'"):
        Pipeline.of_table(table).select("time", "price").aggregate(ASKED).collect()
