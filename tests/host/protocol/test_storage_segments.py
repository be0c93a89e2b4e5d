# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from host.errors import DeviceError, UsageError
from host.protocol.segments import StorageSegments
from host.protocol.storage import StorageRule


@st.composite
def histories(draw):
    """Strategy for storage and segments: (tuples before it, its live cores)."""
    rule = StorageRule(
        draw(st.integers(1, 5)), draw(st.integers(1, 3)), draw(st.sampled_from([2, 4]))
    )
    cores = st.lists(st.integers(0, rule.cores - 1), min_size=1, unique=True)
    return rule, draw(st.lists(st.tuples(st.integers(0, 12), cores), max_size=6))


def stored_by(rule, changes, count):
    """The ordinals that each core has stored after ``count`` tuples, in lists, one by one."""
    live, turn, held = list(range(rule.cores)), 0, [[] for _ in range(rule.cores)]
    starts = []
    at = 0
    for gap, cores in changes:
        at += gap
        starts.append((at, cores))
    for n in range(count):
        for at, cores in starts:
            if at == n:
                live, turn = cores, 0
        held[live[turn % len(live)]].append(n)
        turn += 1
    return held


@given(histories(), st.integers(0, 20))
def test_places_and_ordinals_are_those_of_lists(history, more):
    rule, changes = history
    segments = StorageSegments(rule)
    total = sum(gap for gap, _ in changes)
    at = 0
    for gap, cores in changes:
        at += gap
        segments.begin(at, cores)
    count = total + more
    held = stored_by(rule, changes, count)
    core, local = segments.locals(np.arange(count))
    for n in range(count):
        assert held[core[n]][local[n]] == n
    row, lane = segments.slots(local)
    visible = [n for own in held for n in own[-rule.slots :]]
    before = np.full(len(visible), count)
    found = segments.ordinals(before, core[visible], row[visible], lane[visible])
    assert found.tolist() == visible
    every = np.arange(rule.cores)
    begin = count // 2
    assert segments.held(
        np.full(rule.cores, begin), np.full(rule.cores, count), every
    ).tolist() == [sum(n >= begin for n in own) for own in held]


@pytest.mark.parametrize("live", [[], [3], [-1], [0, 1, 0]])
def test_a_segment_needs_cores_that_exist_each_once(live):
    with pytest.raises(UsageError, match="at most once"):
        StorageSegments(StorageRule(3, 1, 4)).begin(0, live)


def test_a_place_of_a_core_that_has_stored_nothing_is_refused():
    segments = StorageSegments(StorageRule(3, 1, 4))
    segments.begin(0, [2])
    one, zero = np.array([1]), np.array([0])
    with pytest.raises(DeviceError, match="nothing is stored"):
        segments.ordinals(one, one, zero, zero)


def test_old_segments_are_forgotten_and_the_rest_stays_the_same():
    segments = StorageSegments(StorageRule(2, 1, 8))
    segments.begin(3, [1])
    segments.begin(5, [0, 1])
    core, local = segments.locals(np.arange(5, 9))
    segments.forget(5)
    again = segments.locals(np.arange(5, 9))
    assert [part.tolist() for part in again] == [core.tolist(), local.tolist()]


@pytest.mark.parametrize("live", [[1, 0, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0]])
def test_an_empty_window_keeps_the_order_of_the_cores(live):
    segments = StorageSegments(StorageRule(3, 1, 8))
    segments.begin(5, live)
    segments.restart()
    core, local = segments.locals(np.arange(6))
    assert core.tolist() == live * 2
    assert local.tolist() == [0, 0, 0, 1, 1, 1]
