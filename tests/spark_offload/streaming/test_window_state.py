# SPDX-License-Identifier: Apache-2.0
"""The kept rows of a group are those that no watermark has passed, whatever has happened."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host.join_type import JoinType
from host.side import Side
from spark_offload.streaming.window_state import WindowState
from tests.spark_offload.stream_model import SCHEMA, stream_task
from tests.spark_offload.streaming.state_model import GroupState

WIDTH = 50


def task(how="inner", *, slice_length=20, width=WIDTH):
    within = timedelta(microseconds=width)
    return stream_task(equal=True, groups=1, within=within, slice_length=slice_length, how=how)


def table(times, first=0):
    """Return rows at these microseconds, numbered from ``first`` on."""
    numbers = range(first, first + len(times))
    columns = [times, [0] * len(times), [0] * len(times), list(numbers)]
    arrays = [
        pa.array(column, pa.int64()).cast(field.type)
        for column, field in zip(columns, SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


class Model:
    """The rows as a list: ``[side, time, id, matched]``, by slice and in the order of arrival."""

    def __init__(self, how, length):
        self.how, self.length = JoinType.of(how), length
        self.rows = []

    def near(self, side, span):
        if span is None:
            return []
        first, last = (micros // self.length for micros in span)
        found = [row for row in self.rows if row[0] == side]
        found = [row for row in found if first <= row[1] // self.length <= last]
        return sorted(found, key=lambda row: row[1] // self.length)

    def end(self, row):
        return (row[1] // self.length + 1) * self.length + WIDTH

    def expire(self, watermark):
        gone = [row for row in self.rows if self.end(row) <= watermark]
        self.rows = [row for row in self.rows if self.end(row) > watermark]
        wanted = self.how is JoinType.LEFT_SEMI
        alone = [r for r in gone if self.how.tracks(Side(r[0])) and r[3] == wanted]
        return len(gone), sorted((row[0], row[2]) for row in alone)

    def timer(self):
        return {max(1, -(-min(map(self.end, self.rows)) // 1000))} if self.rows else set()


STEP = st.fixed_dictionaries(
    {
        "span": st.none() | st.tuples(st.integers(-200, 200), st.integers(0, 60)),
        "times": st.tuples(*[st.lists(st.integers(-200, 200), max_size=6)] * 2),
        "far": st.sampled_from([0, 0, 5_000]),
        "watermark": st.integers(-150, 250),
        "fired": st.booleans(),
        "seed": st.integers(0, 999),
    }
)


@given(
    st.sampled_from([kind.value for kind in JoinType]),
    st.sampled_from([20, 7, 1000]),
    st.lists(STEP, max_size=5),
)
def test_what_is_kept_and_what_leaves_is_what_a_list_of_rows_says(how, length, steps):
    state, model, count = GroupState(), Model(how, length), 0
    for step in steps:
        rng = np.random.default_rng(step["seed"])
        # Slices stay as long as they were when the first row was kept.
        now = task(how, slice_length=length if not model.rows else length + 3)
        window = WindowState(now, state.directory, state.rows, state)
        gone, alone = model.expire(step["watermark"])
        window.expire(step["watermark"])
        assert window.expired == gone
        assert (
            sorted((side, row["id"]) for side, rows in window.alone for row in rows.to_pylist())
            == alone
        )
        stored = 0
        for side in (0, 1):
            span = step["span"] and (step["span"][0], sum(step["span"]))
            near = window.near(side, span)
            want = model.near(side, span)
            assert near.schema == SCHEMA
            assert near.column("id").to_pylist() == [row[2] for row in want]
            matched = rng.random(len(want)) < 0.3
            window.mark(side, matched)
            for row, flag in zip(want, matched.tolist(), strict=True):
                row[3] |= flag
            times = [time + step["far"] for time in step["times"][side]]
            fresh = rng.random(len(times)) < 0.3
            window.add(side, table(times, count), fresh)
            for time, flag in zip(times, fresh.tolist(), strict=True):
                model.rows.append([side, time, count, flag])
                count += 1
            stored += len(times)
        assert window.stored == stored
        fired = None
        if step["fired"] and state.timers:
            (fired,) = state.timers
        window.save(fired=fired)
        if fired is not None and model.timer() != {fired}:
            state.timers.discard(fired)  # as Spark does behind a timer that has gone off
        assert state.timers == model.timer()
        if not model.rows:
            assert state.directory.get() is None
            assert not state.rows.values
            model.length = length


def kept(state, side, how="inner"):
    """Return the numbers of all kept rows of a side."""
    window = WindowState(task(how), state.directory, state.rows, state)
    return window.near(side, (-(10**9), 10**9)).column("id").to_pylist()


def test_only_the_slices_that_change_are_written():
    state = GroupState()
    window = WindowState(task("full"), state.directory, state.rows, state)
    window.add(0, table([5, 25, 45]), np.array([False, True, False]))
    window.save()
    state.rows.written.clear()
    window = WindowState(task("full"), state.directory, state.rows, state)
    window.near(0, (0, 59))
    window.mark(0, np.array([True, True, False]))  # the second one had matched already
    window.add(0, table([46], first=3), np.array([False]))
    window.save()
    assert sorted(state.rows.written) == [(0, 2), (2, 0), (2, 2)]
    assert kept(state, 0, "full") == [0, 1, 2, 3]


def test_a_side_whose_rows_do_not_come_alone_has_no_bits():
    state = GroupState()
    window = WindowState(task("left"), state.directory, state.rows, state)
    for side in (0, 1):
        window.add(side, table([5]), np.array([False]))
    window.save()
    assert sorted(state.rows.values) == [(0, 0), (1, 0), (2, 0)]


@pytest.mark.parametrize(
    ("key", "words"),
    [((0, 2), r"lost slice \(0, 2\) of a group"), ((2, 2), r"lost the bits of slice \(0, 2\)")],
)
def test_a_slice_that_the_state_store_has_lost_is_named(key, words):
    state = GroupState()
    window = WindowState(task("full"), state.directory, state.rows, state)
    window.add(0, table([45]), np.array([False]))
    window.save()
    state.rows.removeKey(key)
    window = WindowState(task("full"), state.directory, state.rows, state)

    def visit():
        window.near(0, (45, 45))
        window.mark(0, np.array([True]))

    with pytest.raises(RuntimeError, match=words):
        visit()


def test_the_timer_is_a_whole_millisecond_at_which_the_slice_has_expired():
    state = GroupState()
    now = replace(task(), slice_length=1_500, width=1_200)
    window = WindowState(now, state.directory, state.rows, state)
    window.add(1, table([1_499, 1_500]), np.zeros(2, np.bool_))
    window.save()
    assert state.timers == {3}  # 1,500 + 1,200 microseconds, rounded up
    window = WindowState(now, state.directory, state.rows, state)
    window.expire(2_699)
    assert window.expired == 0
    window.expire(2_700)
    assert window.expired == 1
    window.save()
    assert state.timers == {5}
