# SPDX-License-Identifier: Apache-2.0
"""Panes of a micro-batch carry their states, the question as a type, and what was measured."""

import pyarrow as pa
import pytest

from host.operators.aggregate import WindowAggregation
from host.operators.states import Phases
from host.query.queries import AggregateQuery
from spark_offload.measures import PANE_NUMBERS
from spark_offload.stream.metrics import panes_function, panes_schema
from spark_offload.stream.task import question_of_aggregation, question_type
from spark_offload.task.operators import AggregateTask

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int32())])
QUERY = AggregateQuery(time="t", window=6, advance=4, on=["k"], aggregates={"m": "mean:v"})


def function():
    panes = Phases(QUERY).panes
    question = pa.field("question", question_type({"window": "6"}))
    schema = panes_schema(WindowAggregation(SCHEMA, panes).schema, question)
    return schema, panes_function(AggregateTask(query=panes, input=SCHEMA, output=schema), "panes")


def test_the_rows_at_hand_become_panes_and_only_the_first_tells_what_was_measured():
    schema, panes = function()
    rows = [{"t": t, "k": k, "v": v} for t, k, v in [(5, "a", 1), (0, "b", 2), (4, "a", None)]]
    halves = [pa.RecordBatch.from_pylist(half, SCHEMA) for half in (rows[:1], rows[1:])]
    (batch,) = panes(iter(halves))
    assert batch.schema == schema
    found = batch.to_pylist()
    states = [[row[name] for name in ("window_start", "k", "state0", "state1")] for row in found]
    assert states == [[0, "b", 2, 1], [4, "a", 1, 1]]
    assert [row["question"] for row in found] == [None, None]
    assert found[0]["rows"] == 3
    assert found[0]["seconds"] > 0
    assert [found[1][name] for name in PANE_NUMBERS] == [None] * len(PANE_NUMBERS)


def test_no_rows_are_no_panes():
    _, panes = function()
    assert list(panes(iter([pa.RecordBatch.from_pylist([], SCHEMA)]))) == []


@pytest.mark.parametrize(
    "change",
    [
        {"window": 8}, {"advance": 3}, {"on": ["k", "v"]}, {"time": "v"},
        {"aggregates": {"m": "sum:v"}}, {"aggregates": {"m": "mean:t"}},
    ],
    ids=str,
)  # fmt: skip
def test_another_question_is_another_type_and_its_fields_tell_it(change):
    given = {
        "time": "t", "window": 6, "advance": 4, "on": ["k"], "aggregates": {"m": "mean:v"},
    }  # fmt: skip
    own, other = (
        question_type(question_of_aggregation(AggregateQuery(**asked), "t int, k string, v int"))
        for asked in (given, given | change)
    )
    kinds = [[field.type for field in one] for one in (own, other)]
    assert kinds[0] != kinds[1], "Spark compares types and ignores names"
    assert "window = 6" in own.field(0).name
    renamed = given | {"aggregates": {"another name": "mean:v"}}
    assert own == question_type(
        question_of_aggregation(AggregateQuery(**renamed), "t int, k string, v int")
    )
