# SPDX-License-Identifier: Apache-2.0
"""As-of joins of streams: micro-batches together give the batch join, and state stays small."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
import pandas as pd
import pyarrow as pa
import pytest

from host import UsageError
from host.operators.asof import AsofJoin
from host.query.quantities import Duration
from host.query.queries import AsofQuery
from host.query.tables import output_schema
from host.reference.types import Direction
from spark_offload.stream.groups import REGISTRY, group_keys
from spark_offload.stream.processor import NUMBERS, AsofGroups
from spark_offload.stream.task import AsofStreamTask, from_blob, to_blob
from tests.spark_offload.stream.state_model import GroupState

BEGIN = 5_000_000
"""Milliseconds that are added to all times and watermarks."""

SCHEMA = pa.schema([("t", pa.timestamp("us", tz="UTC")), ("k", pa.string()), ("n", pa.int64())])
KEYS = st.none() | st.sampled_from("ab")
ROWS = st.lists(st.tuples(st.integers(0, 30), KEYS), max_size=5)
#: Left rows, right rows, and by how much the watermark rises behind them.
BATCHES = st.lists(st.tuples(ROWS, ROWS, st.integers(0, 9)), max_size=6)
QUERY = st.builds(
    lambda direction, tolerance, exact, how: AsofQuery(
        time="t",
        on="k",
        direction=direction,
        # Without a tolerance streams can only look back.
        within=None
        if tolerance is None and direction is Direction.BACKWARD
        else Duration((tolerance or 0) * 1_000_000),
        allow_exact_matches=exact,
        how=how,
    ),
    st.sampled_from(Direction),
    st.none() | st.integers(0, 8),
    st.booleans(),
    st.sampled_from(["left", "inner"]),
)


def task(query, question="q"):
    tolerance = None if query.within is None else query.within.nanoseconds // 1000
    return AsofStreamTask(
        query=query,
        times=query.time,
        left=SCHEMA,
        right=SCHEMA,
        output=output_schema(SCHEMA, SCHEMA, how=query.how),
        groups=group_keys(1),
        question={"how": question},
        ahead=(tolerance or 0) if query.direction.looks_ahead else 0,
        tolerance=tolerance,
    )


def rows_table(rows, first):
    times = pa.array([1000 * (BEGIN + ms) for ms, _ in rows], pa.int64()).cast(SCHEMA[0].type)
    numbers = pa.array(range(first, first + len(rows)), pa.int64())
    return pa.table([times, pa.array([key for _, key in rows], pa.string()), numbers], SCHEMA)


class Group:
    """One group; each call is that of a task of its own, as in Spark."""

    def __init__(self, task):
        self.task, self.state = task, GroupState()
        self.results, self.numbers = [], {}

    def call(self, do):
        state = self.state
        groups = AsofGroups(self.task, state.question, state.directory, state.rows, state)
        for frame in do(groups):
            blob = frame["pairs"][0]
            if blob is not None:
                for batch in from_blob(blob, self.task.output):
                    self.results += [tuple(row.values()) for row in batch.to_pylist()]
            for name in NUMBERS:
                self.numbers[name] = self.numbers.get(name, 0) + frame[name][0]
        groups.close()

    def come(self, sides, watermark):
        """Run a micro-batch: first the rows, then the timers that the watermark has reached."""
        number = self.task.groups[0]
        frames = [
            pd.DataFrame({"side": [side], "rows": [to_blob(rows.to_batches(), SCHEMA)]})
            for side, rows in enumerate(sides)
            if rows.num_rows
        ]
        if frames:
            self.call(lambda groups: groups.rows_came(number, iter(frames), watermark))
        for timer in [timer for timer in self.state.timers if timer <= watermark]:
            self.state.timers.remove(timer)
            self.call(lambda groups, timer=timer: groups.timer_fired(number, timer, watermark))
            assert all(later > watermark for later in self.state.timers)


@settings(max_examples=60)
@given(BATCHES, QUERY)
def test_all_micro_batches_are_the_batch_join_of_the_rows_that_were_not_late(batches, query):
    group = Group(task(query))
    watermark, accepted, count, late = 0, ([], []), 0, 0
    for *sides, rise in batches:
        tables = []
        for side, rows in enumerate(sides):
            table = rows_table(rows, count)
            count += len(rows)
            in_time = table.filter(
                pa.array([watermark == 0 or BEGIN + ms >= watermark for ms, _ in rows], pa.bool_())
            )
            late += table.num_rows - in_time.num_rows
            accepted[side].append(in_time)
            tables.append(table)
        group.come(tables, watermark)
        watermark = max(watermark, BEGIN) + rise
    empty = SCHEMA.empty_table()
    # Timers alone bring out the rest, however far the watermark jumps.
    group.come((empty, empty), BEGIN + 100)
    assert not group.state.rows.values.get((0, 0, 0)), "no left row waits any more"
    # A group without timers is tidied up by the next rows that come.
    accepted[0].append(rows_table([(100, None)], count))
    group.come((accepted[0][-1], empty), BEGIN + 100)
    left, right = (pa.concat_tables([empty, *tables]) for tables in accepted)
    expected = AsofJoin(left, right, query).table().to_pylist()
    assert sorted(map(str, group.results)) == sorted(str(tuple(row.values())) for row in expected)
    assert group.numbers.get("left_late", 0) + group.numbers.get("right_late", 0) == late
    assert group.numbers.get("results", 0) == len(expected)
    kept = group.numbers.get("stored", 0) - group.numbers.get("expired", 0)
    keys = {key for key in right["k"].to_pylist() if key is not None}
    assert kept == (len(keys) if query.within is None else 0)
    assert bool(group.state.rows.values) == bool(kept)


def test_a_checkpoint_of_another_question_is_refused():
    query = AsofQuery(time="t")
    group = Group(task(query, "one"))
    group.call(lambda groups: groups.rows_came(REGISTRY, iter(()), 0))
    assert json.loads(group.state.question.value[0]) == {"how": "one"}
    group.task = task(query, "other")
    with pytest.raises(UsageError, match="begun with how = one, but now it is other"):
        group.call(lambda groups: groups.rows_came(REGISTRY, iter(()), 0))
