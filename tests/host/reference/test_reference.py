# SPDX-License-Identifier: Apache-2.0
from itertools import islice
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from host import (
    EQUAL,
    Arrivals,
    Bounds,
    CountWindow,
    DifferenceBand,
    Side,
    TimeWindow,
    UsageError,
    reference_join,
)
from host.errors import CapacityError
from host.reference import join as reference
from tests.host.naive import naive_join

SMALL = st.integers(-3, 3)
EXTREME = st.sampled_from([-(1 << 63), 1 - (1 << 63), -1, 0, 1, (1 << 63) - 1])
WINDOW = st.builds(CountWindow, st.integers(1, 12)) | st.builds(TimeWindow, st.integers(0, 8))
BOUND = st.none() | st.integers(-3, 3) | st.sampled_from([-(1 << 64), (1 << 64) - 1])
BOUNDS = st.builds(Bounds, BOUND, BOUND)


@st.composite
def some_arrivals(draw, values=SMALL | EXTREME):
    """Arrivals of up to 40 tuples in two fields, with many ties in time."""
    rows = draw(st.lists(st.tuples(st.integers(0, 1), values, values, st.integers(0, 3))))
    side, x, y, step = np.array(rows, object).reshape(-1, 4).T
    keys = {"x": x.astype(np.int64), "y": y.astype(np.int64)}
    return Arrivals(side.astype(np.uint8), keys, np.cumsum(step.astype(np.int64)))


def as_pairs(matches):
    """Return matches as a list of pairs."""
    return list(zip(matches.probe.tolist(), matches.stored.tolist(), strict=True))


def holds(bounds):
    """Return the naive predicate of a band."""

    def predicate(r, s):
        return all(
            (b.low is None or b.low <= r[n] - s[n]) and (b.high is None or r[n] - s[n] <= b.high)
            for n, b in bounds.items()
        )

    return predicate


@given(some_arrivals(), BOUNDS, BOUNDS, WINDOW, WINDOW)
def test_it_agrees_with_the_naive_join(arrivals, x, y, window_r, window_s):
    bounds = {"x": x, "y": y}
    matches = reference_join(arrivals, DifferenceBand(bounds), window_r, window_s)
    assert as_pairs(matches) == naive_join(arrivals, holds(bounds), (window_r, window_s))
    # The same pairs as numbers of the tuples within their sides.
    numbers = [int((arrivals.side[:i] == arrivals.side[i]).sum()) for i in range(len(arrivals))]
    by_side = [(p, u) if arrivals.side[p] == Side.R else (u, p) for p, u in as_pairs(matches)]
    r, s = matches.rows(arrivals)
    assert r.tolist() == [numbers[i] for i, _ in by_side]
    assert s.tolist() == [numbers[i] for _, i in by_side]


@given(some_arrivals(SMALL), WINDOW, WINDOW)
def test_any_function_is_a_predicate(arrivals, window_r, window_s):
    def predicate(r, s):
        return (r.x * s.y > 1) | ~(r.y >= s.x)

    matches = reference_join(arrivals, predicate, window_r, window_s)

    def naive(r, s):
        return r["x"] * s["y"] > 1 or not r["y"] >= s["x"]

    assert as_pairs(matches) == naive_join(arrivals, naive, (window_r, window_s))


@pytest.mark.parametrize("window", [CountWindow(1), CountWindow(70), TimeWindow(15)])
@pytest.mark.parametrize("block", [1, 7, 1 << 18])
def test_blocks_do_not_change_the_answer(monkeypatch, window, block):
    monkeypatch.setattr(reference.expand, "__defaults__", (block,))
    rng = np.random.default_rng(1)
    arrivals = Arrivals(
        rng.integers(0, 2, 400), {"x": rng.integers(0, 30, 400)}, np.sort(rng.integers(0, 99, 400))
    )
    bounds = {"x": Bounds(-1, 2)}
    got = reference_join(arrivals, DifferenceBand(bounds), window)
    assert as_pairs(got) == naive_join(arrivals, holds(bounds), (window, window))


@pytest.mark.parametrize("block", [1, 3, 4, 100])
def test_ranges_come_whole_and_about_a_block_at_a_time(block):
    first, last = np.array([0, 2, 5, 1, 7]), np.array([4, 2, 9, 3, 8])
    parts = list(islice(reference.expand(first, last, block), 9))
    pairs = [pair for part in parts for pair in zip(*(each.tolist() for each in part), strict=True)]
    assert pairs == [(i, j) for i in range(5) for j in range(first[i], last[i])]
    assert all(len(index) <= max(block, 4) for index, _ in parts)


def test_sorting_by_a_field_does_not_change_the_answer():
    # Windows of thousands, so that candidates come from the sorted field and from several blocks.
    rng = np.random.default_rng(2)
    count = 30_000
    arrivals = Arrivals(
        rng.integers(0, 2, count),
        {"x": rng.integers(0, 3000, count), "y": rng.integers(0, 50, count)},
        np.sort(rng.integers(0, 10 * count, count)),
    )
    band = DifferenceBand({"x": Bounds(-3, 5), "y": EQUAL})

    def unsorted(r, s):
        return (r.x - s.x >= -3) & (r.x - s.x <= 5) & (r.y == s.y)

    windows = TimeWindow(20_000), CountWindow(1500)
    got = reference_join(arrivals, band, *windows)
    want = reference_join(arrivals, unsorted, *windows)
    assert len(got) > 1000
    assert as_pairs(got) == as_pairs(want)


@pytest.mark.parametrize("window", [1, 4, 1200])
def test_thousands_of_tuples_are_joined_a_block_of_probes_at_a_time(window):
    rng = np.random.default_rng(window)
    count = 9_000
    arrivals = Arrivals(rng.integers(0, 2, count), {"x": rng.integers(0, 9 * window, count)})
    matches = reference_join(arrivals, DifferenceBand({"x": EQUAL}), CountWindow(window))
    x, seen, want = arrivals.keys["x"].tolist(), ([], []), []
    for at, side in enumerate(arrivals.side.tolist()):
        want += [(at, other) for other in seen[1 - side][-window:] if x[other] == x[at]]
        seen[side].append(at)
    assert as_pairs(matches) == want


def test_unsigned_extremes_are_exact():
    top = (1 << 64) - 1
    arrivals = Arrivals([0, 1, 0, 1], {"x": np.array([0, top, top - 1, 1], np.uint64)})
    band = DifferenceBand({"x": Bounds(-1, -1)})
    assert as_pairs(reference_join(arrivals, band, CountWindow(9))) == [(2, 1), (3, 0)]


def test_each_pair_is_found_once_by_its_later_tuple():
    arrivals = Arrivals(np.tile([0, 1], 20), {"x": np.zeros(40, np.int64)})
    matches = reference_join(arrivals, DifferenceBand({"x": EQUAL}), CountWindow(40))
    assert len(matches) == len(set(as_pairs(matches))) == 20 * 20
    assert (matches.probe > matches.stored).all()
    r, s = matches.rows(arrivals)
    assert set(zip(r.tolist(), s.tolist(), strict=True)) == {
        (i, j) for i in range(20) for j in range(20)
    }


@pytest.mark.parametrize("sides", [[], [0] * 5, [1] * 5])
def test_an_empty_or_one_sided_input_has_no_answer(sides):
    arrivals = Arrivals(sides, {"x": np.zeros(len(sides), np.int64)}, np.arange(len(sides)))
    for window in (CountWindow(3), TimeWindow(3)):
        assert len(reference_join(arrivals, DifferenceBand({}), window)) == 0


@given(some_arrivals(SMALL), WINDOW, WINDOW, st.integers(1, 6))
def test_the_first_tuple_without_room_is_named(arrivals, window_r, window_s, capacity):
    windows = (window_r, window_s)
    faults, needs = [], {}
    for i, side in enumerate(arrivals.side):
        if isinstance(windows[side], TimeWindow):
            now, mine = arrivals.timestamp[i], np.flatnonzero(arrivals.side[:i] == side)
            held = (now - arrivals.timestamp[mine] <= windows[side].lifespan).sum()
            if held >= capacity:
                faults.append((Side(side), len(mine)))
                needs[side] = max(needs.get(side, 0), int(held) + 1)
    if not faults:
        reference_join(arrivals, DifferenceBand({}), *windows, capacity=capacity)
        return
    with pytest.raises(CapacityError) as caught:
        reference_join(arrivals, DifferenceBand({}), *windows, capacity=capacity)
    assert (caught.value.side, caught.value.ordinal) == faults[0]
    assert caught.value.capacity == capacity
    assert caught.value.needed == needs[faults[0][0]]
    reference_join(arrivals, DifferenceBand({}), *windows, capacity=50)


def test_a_time_based_window_without_timestamps_is_an_error():
    arrivals = Arrivals([0, 1], {"x": np.zeros(2, np.int64)})
    with pytest.raises(UsageError, match=r"^A time-based window needs arrivals with timestamps\.$"):
        reference_join(arrivals, DifferenceBand({}), TimeWindow(1))


def test_an_object_with_attributes_is_all_that_a_predicate_sees():
    arrivals = Arrivals([0, 1], {"x": np.array([1, 2])})
    seen = []

    def predicate(r, s):
        seen.append((r, s))
        return r.x < s.x

    assert len(reference_join(arrivals, predicate, CountWindow(1))) == 1
    assert all(isinstance(tuple_, SimpleNamespace) for pair in seen for tuple_ in pair)
