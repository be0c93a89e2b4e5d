# SPDX-License-Identifier: Apache-2.0
"""How far halos reach back, by a list of times instead of a frame."""

from bisect import bisect_right
import random
from types import SimpleNamespace

import pytest

from host.reference.arrivals import Side
from host.reference.types import JoinType
from spark_offload.partitioning import halos as module
from spark_offload.partitioning.halos import count_halos, time_halos
from spark_offload.partitioning.tagged import LEAST


def random_times(seed):
    """Return rows of both sides, and where ranges of time start."""
    rng = random.Random(seed)
    rows = rng.choice([0, 5, 40, 90])
    share = rng.choice([0.0, 0.2, 0.5, 0.9])
    times = [(int(rng.random() < share), rng.randrange(31)) for _ in range(rows)]
    return Times(times), sorted(rng.sample(range(1, 31), seed % 5)), rng


class Times(list):
    """Rows ``(side, time)`` as a frame, of which one side can be asked for."""

    def where(self, side):
        return Times(row for row in self if row[0] == side)


class _Side:
    """The column ``side``; compared with a side, it is that side."""

    def __init__(self, name):
        assert name == "side"

    def __eq__(self, side):
        return side

    __hash__ = None


def _census(times, starts):
    groups = {}
    for side, time in sorted(times):
        place = (side, bisect_right(starts, time))
        groups[place] = groups.get(place, 0) + 1
    return groups


def _times_at(times, starts, wanted):
    ranges = {}
    for side, time in sorted(times):
        ranges.setdefault((side, bisect_right(starts, time)), []).append(time)
    return {place: ranges[place[0], part][-rank] for place, (part, rank) in wanted.items()}


def _sent(times, starts, reaches, side):
    sent = [0] * (len(starts) + 1)
    for place, (start, reach) in enumerate(zip(starts, reaches, strict=True), 1):
        sent[place] = sum(of == side and reach <= time < start for of, time in times)
    return sent


@pytest.fixture
def _lists(monkeypatch):
    """What Spark would read of a frame is read of a list."""
    for function in (_census, _times_at, _sent):
        monkeypatch.setattr(module, function.__name__, function)
    monkeypatch.setattr(module, "F", SimpleNamespace(col=_Side))


def nth_before(times, side, start, size):
    """Return the time of the ``size``-th row of a side before a time."""
    before = sorted(time for of, time in times if of == side and time < start)
    return before[-size] if len(before) >= size else LEAST


@pytest.mark.few(50)
@pytest.mark.usefixtures("_lists")
@pytest.mark.parametrize("how", list(JoinType))
@pytest.mark.parametrize("seed", range(25))
def test_a_count_based_halo_reaches_to_the_last_rows_that_can_be_met(seed, how):
    times, starts, rng = random_times(seed)
    size = rng.randrange(1, 7)
    found = count_halos(times, starts, size, how)
    assert found.starts == tuple(starts)
    assert found.departures is None
    own = [[0] * (len(starts) + 1) for _ in Side]
    for of, time in times:
        own[of][bisect_right(starts, time)] += 1
    assert found.counts.own == tuple(zip(*own, strict=True))
    for side in Side:
        held = [nth_before(times, side, start, size) for start in starts]
        reaches = held
        if how.tracks(side.other):
            # The oldest row of the other side in the window may have met so many before it.
            oldest = [nth_before(times, side.other, start, size) for start in starts]
            reaches = [nth_before(times, side, time, size) for time in oldest]
        assert list(found.reaches[side]) == reaches
        sent = _sent(times, starts, reaches, side)
        assert [counts[side] for counts in found.counts.sent] == sent
        before = [0, *(sum(of == side and time < start for of, time in times) for start in starts)]
        needed = sent if how.tracks(side.other) else [min(size, count) for count in before]
        assert [counts[side] for counts in found.counts.needed] == needed


@pytest.mark.parametrize("how", list(JoinType))
@pytest.mark.parametrize("seed", range(10))
def test_a_halo_by_time_reaches_as_far_as_the_window(seed, how):
    _, starts, rng = random_times(seed)
    width = rng.randrange(10)
    found = time_halos(starts, width, how)
    assert found.starts == tuple(starts)
    assert found.counts is None
    held = [start - width for start in starts]
    assert found.departures == (None if how is JoinType.INNER else tuple(held))
    for side in Side:
        reaches = [start - 2 * width for start in starts] if how.tracks(side.other) else held
        assert list(found.reaches[side]) == reaches


def test_no_reach_is_below_the_least_of_all_times():
    found = time_halos([LEAST + 3, 0], 5, JoinType.FULL)
    assert found.reaches == ((LEAST, -10),) * 2
    assert found.departures == (LEAST, -5)
