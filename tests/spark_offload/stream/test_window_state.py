# SPDX-License-Identifier: Apache-2.0
"""The kept rows of a group are those that no watermark has passed, whatever has happened."""

import copy
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest

from host.reference.arrivals import Side
from host.reference.types import JoinType
from spark_offload.stream import state as module
from spark_offload.stream.state import MatchedBits, WindowState
from tests.spark_offload.stream.state_model import GroupState
from tests.spark_offload.stream_model import SCHEMA, stream_task

WIDTH = 50
RIGHT = SCHEMA.append(pa.field("y", pa.int16()))
"""Columns of the right side, one more than on the left."""


def task(how="inner", *, slice_length=20, width=WIDTH):
    within = timedelta(microseconds=width)
    made = stream_task(equal=True, groups=1, within=within, slice_length=slice_length, how=how)
    return replace(made, right=RIGHT)


def table(times, first=0, side=0):
    """Return rows at these microseconds, numbered from ``first`` on."""
    schema = (SCHEMA, RIGHT)[side]
    numbers = range(first, first + len(times))
    columns = [times, [0] * len(times), [0] * len(times), list(numbers), [7] * len(times)]
    arrays = [
        pa.array(column, pa.int64()).cast(field.type)
        for column, field in zip(columns[: len(schema)], schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


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


def random_step(rng):
    """Return what happens in a micro-batch."""
    far = int(rng.choice([0, 0, 5_000]))
    times = [(rng.integers(-200, 200, rng.integers(0, 9)) + far).tolist() for _ in range(2)]
    first = int(rng.integers(-200, 200))
    span = None if rng.random() < 0.1 else (first, first + int(rng.integers(0, 200)))
    return times, span, int(rng.integers(-150, 250)), rng.random() < 0.5


@pytest.mark.few(9)
@pytest.mark.parametrize("how", [kind.value for kind in JoinType])
@pytest.mark.parametrize("length", [20, 7, 1000])
def test_what_is_kept_and_what_leaves_is_what_a_list_of_rows_says(how, length):
    for seed in range(6):
        keep(how, length, np.random.default_rng(seed))


@pytest.mark.parametrize("how", ["inner", "full"])
def test_parts_of_any_size_hold_the_same_rows(how, monkeypatch):
    for seed in range(6):
        monkeypatch.setattr(module, "PART_ROWS", 1 + seed)
        keep(how, 40, np.random.default_rng(seed))


def test_rows_are_appended_and_a_small_last_part_is_filled_up(monkeypatch):
    monkeypatch.setattr(module, "PART_ROWS", 3)
    state = GroupState()
    written = []
    for first, count in ((0, 2), (2, 2), (4, 1), (5, 9), (14, 1)):
        window = WindowState(task(), state.directory, state.rows, state)
        window.add(0, table([5] * count, first), np.zeros(count, np.bool_))
        window.save()
        written += state.rows.written
        state.rows.written.clear()
    assert written == [(0, 0, 0), (0, 0, 0), (0, 0, 1), (0, 0, 1), (0, 0, 2)]
    assert kept(state, 0) == list(range(15))
    window = WindowState(task(), state.directory, state.rows, state)
    window.expire(10**6)
    window.save()
    assert window.expired == 15
    assert state.rows.values == {}


def keep(how, length, rng):
    """Keep random rows, and compare them with a list.

    Micro-batches are those of two workers, each with the parts that it holds; some attempts fail.
    """
    state, model, count = GroupState(), Model(how, length), 0
    workers = [{}, {}]
    for _ in range(6):
        worker = workers[rng.integers(2)]
        if rng.random() < 0.3:
            fail(task(how, slice_length=length), copy.deepcopy(state), worker, rng)
        times_of, span, watermark, has_fired = random_step(rng)
        # Slices stay as long as they were when the first row was kept.
        now = task(how, slice_length=length if not model.rows else length + 3)
        window = WindowState(now, state.directory, state.rows, state, worker)
        gone, alone = model.expire(watermark)
        window.expire(watermark)
        assert window.expired == gone
        assert (
            sorted((side, row["id"]) for side, rows in window.alone for row in rows.to_pylist())
            == alone
        )
        stored = 0
        for side in (0, 1):
            near = window.near(side, span)
            want = model.near(side, span)
            assert all(part.rows.schema == now.schema(side) for part in near)
            assert ids(near) == [row[2] for row in want]
            matched = rng.random(len(want)) < 0.3
            window.mark(side, matched)
            for row, flag in zip(want, matched.tolist(), strict=True):
                row[3] |= flag
            times = times_of[side]
            fresh = rng.random(len(times)) < 0.3
            window.add(side, table(times, count, side=side), fresh)
            for time, flag in zip(times, fresh.tolist(), strict=True):
                model.rows.append([side, time, count, flag])
                count += 1
            stored += len(times)
        assert window.stored == stored
        fired = None
        if has_fired and state.timers:
            (fired,) = state.timers
            state.deletable = False  # as Spark does that itself, behind a timer that has gone off
        window.save(fired=fired)
        if fired is not None and model.timer() != {fired}:
            state.timers.discard(fired)
        state.deletable = True
        assert state.timers == model.timer()
        if not model.rows:
            assert state.directory.get() is None
            assert not state.rows.values
            model.length = length


def fail(task, state, worker, rng):
    """Change a state that nobody will see, as an attempt that fails before or behind its end."""
    window = WindowState(task, state.directory, state.rows, state, worker)
    window.expire(int(rng.integers(-150, 250)))
    window.near(0, (-200, 200))
    times = rng.integers(-200, 200, 5).tolist()
    window.add(0, table(times, 10_000), np.zeros(5, np.bool_))
    if rng.random() < 0.5:
        window.save()


def kept(state, side, how="inner"):
    """Return the numbers of all kept rows of a side."""
    window = WindowState(task(how), state.directory, state.rows, state)
    return ids(window.near(side, (-(10**9), 10**9)))


def ids(parts):
    """Return the numbers of the rows of parts."""
    return [number for part in parts for number in part.rows.column("id").to_pylist()]


def step(state, worker, times, first):
    """Keep rows in a worker; return the numbers of all rows, and how many were read."""
    window = WindowState(task(), state.directory, state.rows, state, worker)
    found = ids(window.near(0, (-(10**9), 10**9)))
    window.add(0, table(times, first), np.zeros(len(times), np.bool_))
    window.save()
    return found, window.read_rows


def test_a_worker_reads_only_what_it_does_not_hold(monkeypatch):
    monkeypatch.setattr(module, "PART_ROWS", 1)
    state, here, there = GroupState(), {}, {}
    assert step(state, here, [5, 6], 0) == ([], 0)
    assert step(state, here, [25, 7, 8], 2) == ([0, 1], 0)
    assert len(here) == 3
    # The task moves to a worker that holds nothing, and back to one that misses a part.
    assert step(state, there, [46], 5) == ([0, 1, 3, 4, 2], 5)
    assert step(state, here, [], 6) == ([0, 1, 3, 4, 2, 5], 1)
    # What has expired is not held any more.
    window = WindowState(task(), state.directory, state.rows, state, here)
    window.expire(20 + WIDTH)
    window.save()
    assert ids(window.near(0, (0, 99))) == [2, 5]
    assert len(here) == 2
    assert window.read_rows == 0


def test_parts_of_another_version_of_the_state_are_not_believed(monkeypatch):
    monkeypatch.setattr(module, "PART_ROWS", 3)
    state, worker = GroupState(), {}
    step(state, worker, [5, 6], 0)
    before = copy.deepcopy(state)
    # The attempt fills up the part of before, and fails behind its end.
    step(state, worker, [7], 2)
    assert step(state, worker, [], 3)[0] == [0, 1, 2]
    # The same place in the store, the same number of rows: another version.
    assert step(before, worker, [8], 7) == ([0, 1], 2)
    assert step(before, worker, [], 8) == ([0, 1, 7], 0)
    assert kept(before, 0) == [0, 1, 7]


def test_rows_that_are_the_same_on_both_sides_are_held_for_each():
    """Their cells differ, because each side has columns and factors of its own."""
    state, worker = GroupState(), {}
    now = replace(task(), right=SCHEMA)
    window = WindowState(now, state.directory, state.rows, state, worker)
    for side in (0, 1):
        window.add(side, table([5]), np.zeros(1, np.bool_))
    window.save()
    (left,), (right,) = (window.near(side, (0, 9)) for side in (0, 1))
    assert left.rows == right.rows
    assert left is not right
    assert len(worker) == 2


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
    assert sorted(state.rows.written) == [(0, 2, 0), (2, 0, 0), (2, 2, 0)]
    assert kept(state, 0, "full") == [0, 1, 2, 3]


def test_a_side_whose_rows_do_not_come_alone_has_no_bits():
    state = GroupState()
    window = WindowState(task("left"), state.directory, state.rows, state)
    for side in (0, 1):
        window.add(side, table([5], side=side), np.array([False]))
    window.save()
    assert sorted(state.rows.values) == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ((0, 2, 0), r"lost part 0 of slice \(0, 2\) of a group"),
        ((2, 2, 0), r"lost the bits of slice \(0, 2\)"),
    ],
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
    window.add(1, table([1_499, 1_500], side=1), np.zeros(2, np.bool_))
    window.save()
    assert state.timers == {3}  # 1,500 + 1,200 microseconds, rounded up
    window = WindowState(now, state.directory, state.rows, state)
    window.expire(2_699)
    assert window.expired == 0
    window.expire(2_700)
    assert window.expired == 1
    window.save()
    assert state.timers == {5}
    window.expire(9_999)
    far = 15_000_000_000_000_000
    window.add(1, table([far], side=1), np.zeros(1, np.bool_))
    window.save()
    assert state.timers == {(far + 2_700) // 1000 + 1}


def test_bits_of_a_slice_that_goes_are_not_written_any_more():
    state = GroupState()
    bits = MatchedBits(state.rows)
    bits.add((0, 3), 0, np.array([True, False, True]))
    bits.save()
    assert MatchedBits(state.rows).of((0, 3), 3).tolist() == [True, False, True]
    bits.mark((0, 3), np.array([False, True, False]))
    bits.remove((0, 3))
    bits.save()
    assert not state.rows.values
