# SPDX-License-Identifier: Apache-2.0
"""What a task does with a group of rows, by its state, its timers, and the numbers it returns."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pytest

from host import UsageError
from host.errors import CapacityError
from host.query.tables import output_schema
from spark_offload.stream import processor
from spark_offload.stream.groups import REGISTRY
from spark_offload.stream.processor import NUMBERS, OUTPUT_TYPES, GroupJoin
from spark_offload.stream.task import from_blob, to_blob
from tests.spark_offload.stream.state_model import GroupState
from tests.spark_offload.stream_model import SCHEMA, stream_task

WIDTH = 2
"""Of the window in milliseconds; a slice has as many."""

BEGIN = 5_000_000
"""Milliseconds that are added to all times and watermarks."""

RIGHT = SCHEMA.append(pa.field("y", pa.int16()))
"""Columns of the right side, one more than on the left."""


def task(how="left", **options):
    within = timedelta(milliseconds=WIDTH)
    options = {"band": None, "slice_length": 1000 * WIDTH, **options}
    made = stream_task(equal=True, groups=1, within=within, how=how, **options)
    output = output_schema(SCHEMA, RIGHT, how=made.query.how)
    return replace(made, right=RIGHT, output=output)


def packed(side, rows):
    """Return packed rows of a side, which are (milliseconds, id)."""
    schema, none = (SCHEMA, RIGHT)[side], [0] * len(rows)
    columns = [[1000 * ms for ms, _ in rows], none, none, [number for _, number in rows], none]
    arrays = [
        pa.array(column, pa.int64()).cast(field.type)
        for column, field in zip(columns[: len(schema)], schema, strict=True)
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    return pd.DataFrame({"side": [side], "rows": [to_blob([batch], schema)]})


class Group:
    """One group; each call is that of a task of its own."""

    def __init__(self, task):
        self.task, self.state = task, GroupState()
        self.join = None

    def call(self, do):
        state = self.state
        self.join = GroupJoin(self.task, state.question, state.directory, state.rows, state)
        frames = list(do(self.join))
        self.join.close()
        columns = [f"{name} {kind}" for name, kind in NUMBERS.items()]
        assert "pairs binary, " + ", ".join(f"{c} not null" for c in columns) == OUTPUT_TYPES
        results, numbers = [], {}
        for frame in frames:
            assert list(frame.columns) == ["pairs", *NUMBERS]
            assert frame.dtypes[1:].astype(str).tolist() == [
                {"bigint": "int64", "double": "float64"}[kind] for kind in NUMBERS.values()
            ]
            blob = frame["pairs"][0]
            if blob is None:
                numbers = {name: frame[name][0] for name in NUMBERS if frame[name][0]}
                continue
            assert not frame[list(NUMBERS)].to_numpy().any(), "each number is told once"
            for batch in from_blob(blob, self.task.output):
                ids = batch.to_pydict()
                results += zip(ids["id"], ids.get("id_right", [None] * len(batch)), strict=True)
        seconds = [
            numbers.pop(name, None) for name in ("seconds", "device_seconds", "waited_seconds")
        ]
        return results, numbers, seconds

    def come(self, left=(), right=(), *, watermark=None, begin=BEGIN):
        """Run a micro-batch; there is a watermark from the second one on."""
        group = self.task.groups[0]
        watermark = 0 if watermark is None else begin + watermark
        frames = [
            packed(side, [(begin + ms, number) for ms, number in rows])
            for side, rows in enumerate((left, right))
            if rows
        ]
        return self.call(lambda join: join.rows_came(group, iter(frames), watermark))

    def fire(self, watermark):
        (timer,) = self.state.timers
        group = self.task.groups[0]
        self.state.deletable = False  # Spark removes the timer itself, behind it
        found = self.call(lambda join: join.timer_fired(group, timer, BEGIN + watermark))
        self.state.deletable = True
        self.state.timers.discard(timer)
        return found

    @property
    def timers(self):
        return {timer - BEGIN for timer in self.state.timers}


def test_rows_are_joined_kept_and_let_go_of_and_every_number_is_told():
    group = Group(task("full"))
    results, numbers, seconds = group.come([(1, 10), (3, 11)], [(2, 20), (9, 21)])
    assert sorted(results) == [(10, 20), (11, 20)]
    assert numbers == {"left_rows": 2, "right_rows": 2, "results": 2, "stored": 4}
    assert seconds[0] > seconds[1] > 0

    # The row at 1 ms lies in a slice that ends at 2 ms, and can be met for 2 ms more.
    assert group.timers == {4}
    results, numbers, _ = group.come([(4, 12), (5, 13)], [(4, 22), (6, 23)], watermark=5)
    assert results == [(13, 23)]
    assert numbers == {
        "left_rows": 1, "right_rows": 1, "left_late": 1, "right_late": 1,
        "results": 1, "stored": 2, "expired": 1,
    }  # fmt: skip
    assert group.timers == {6}

    results, numbers, seconds = group.fire(8)
    assert (results, numbers) == ([], {"expired": 3})
    assert seconds == [None, None, None]
    results, numbers, _ = group.fire(99)
    assert results == [(None, 21)]
    assert numbers == {"expired": 2, "results": 1}
    assert group.state.timers == set()
    assert group.state.directory.get() is None


def test_rows_leave_alone_in_the_micro_batch_whose_watermark_passes_them():
    group = Group(task("left_anti"))
    group.come([(1, 10), (2, 11)], [(3, 20)])
    results, numbers, _ = group.come([(50, 12)], watermark=50)
    assert results == []
    assert numbers == {"left_rows": 1, "stored": 1, "expired": 3}
    group.come(right=[(90, 21)], watermark=51)
    results, numbers, _ = group.come(watermark=80)
    assert results == [(12, None)]
    assert numbers == {"results": 1, "expired": 1}


def test_a_timer_that_goes_off_too_early_changes_nothing():
    group = Group(task())
    group.come([(1, 10)])
    (timer,) = group.state.timers
    results, numbers, _ = group.call(lambda join: join.timer_fired(group.task.groups[0], timer, 3))
    assert (results, numbers) == ([], {})
    assert group.state.directory.get() is not None


def test_the_registry_holds_the_question_and_reads_its_rows():
    group = Group(task())
    frames = iter([packed(0, [(1, 10)])])
    assert group.call(lambda join: join.rows_came(REGISTRY, frames, 0)) == ([], {}, [None] * 3)
    assert next(frames, None) is None
    assert group.state.question.get() is not None
    assert group.state.directory.get() is None
    group.task = replace(group.task, question=group.task.question | {"how": "full"})
    with pytest.raises(UsageError, match=r"begun with how = left.*\(In Spark partition 0\.\)$"):
        group.call(lambda join: join.rows_came(REGISTRY, iter([]), 0))


def test_rows_of_a_group_that_there_is_no_more_are_an_error():
    group = Group(task())
    with pytest.raises(UsageError, match="a group that there is none of"):
        group.call(lambda join: join.timer_fired(group.task.groups[0] + 1, 4, 9))


def test_software_joins_what_outgrows_the_device_if_there_is_any(software_bundle):
    crowd = [(1, number) for number in range(70)]
    group = Group(task("inner", device=software_bundle, software="software:"))
    results, numbers, _ = group.come(crowd, [(1, 99)])
    assert sorted(results) == [(number, 99) for number in range(70)]
    assert numbers["software_rows"] == 71
    group = Group(task("inner", device=software_bundle))
    with pytest.raises(CapacityError, match="In Spark partition 0"):
        group.come(crowd, [(1, 99)])
    assert group.state.directory.get() is None
    assert group.join._taken is None, "the device is let go of"


def test_new_rows_meet_those_that_were_kept_as_far_as_the_window_reaches():
    group = Group(task("full"))
    assert group.come([(6, 10), (20, 11)])[0] == []
    assert group.come(right=[(7, 20), (9, 21)])[0] == [(10, 20)]
    assert group.come([(11, 12)])[0] == [(12, 21)]
    results, numbers, _ = group.come(watermark=1_000)
    assert results == [(11, None)]
    assert numbers == {"results": 1, "expired": 5}


def test_before_there_is_a_watermark_no_row_is_late_not_even_one_before_1970():
    group = Group(task("inner"))
    assert group.come([(-900, 10)], begin=0)[0] == []
    results, numbers, _ = group.come(right=[(-900, 20)], begin=0)
    assert results == [(10, 20)]
    assert numbers == {"right_rows": 1, "results": 1, "stored": 1}


def test_the_first_millisecond_is_a_watermark():
    group = Group(task("inner"))
    group.come([(-900, 10)], begin=0)
    _, numbers, _ = group.come([(0, 11), (1, 12)], watermark=1, begin=0)
    assert numbers == {"left_rows": 1, "left_late": 1, "stored": 1, "expired": 1}


def test_clock_cycles_are_those_of_the_device(monkeypatch):
    monkeypatch.setattr(
        processor.NewPairs, "cycles", property(lambda pairs: 12, _ignored), raising=False
    )
    assert Group(task()).come([(1, 10)])[1]["cycles"] == 12


def _ignored(pairs, cycles):
    """A setter that leaves things as they are."""


@pytest.mark.parametrize("error", [KeyboardInterrupt(), UsageError("no such row")])
def test_the_device_is_told_what_the_task_fails_with(monkeypatch, error):
    told = []
    taken = SimpleNamespace(device=None, waited=0.0, close=told.append)

    def fail(*arguments):
        raise error

    monkeypatch.setattr(processor, "take_device", lambda devices: taken)
    monkeypatch.setattr(processor, "NewPairs", fail)
    with pytest.raises(type(error)):
        Group(task()).come([(1, 10)])
    assert told == [error]
