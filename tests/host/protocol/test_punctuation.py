# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from host import Arrivals, CountWindow, DifferenceBand, Ordering, Side, reference_join
from host.protocol.punctuation import Grouper
from tests.host.protocol.punctuated import punctuate


def random_sides(seed, count, share_r):
    return (np.random.default_rng(seed).random(count) >= share_r).astype(int).tolist()


#: Most lists of the first kind have a few elements only.
SIDES = st.lists(st.integers(0, 1), max_size=60) | st.builds(
    random_sides, st.integers(0, 99), st.integers(0, 60), st.sampled_from([0.1, 0.5, 0.9])
)
LIMIT = st.none() | st.integers(1, 6)


class NaiveGrouper:
    """One side after the other, one tuple at a time, as the ingress counts."""

    def __init__(self, period, probes, limit, probe_bits):
        self.period = min(period, 1 << probe_bits)  # zero: no stars
        self.probes, self.limit = probes, limit
        self.grouped, self.unstarred, self.passed = [0, 0], [0, 0], [0, 0]

    def feed(self, sides):
        for position, arriving in enumerate(sides):
            for side in (0, 1):
                close = due = False
                if arriving == side:
                    self.grouped[side] += 1
                    self.unstarred[side] += 1
                    due = self.unstarred[side] == self.period
                    close = due or self.grouped[side] == self.probes
                elif self.grouped[side]:
                    self.passed[side] += 1
                    close = self.passed[side] == self.limit
                if close:
                    star = due or 0 < self.period <= self.probes
                    yield position, side, self.grouped[side], star
                    self.grouped[side] = self.passed[side] = 0
                    if star:
                        self.unstarred[side] = 0

    def finish(self):
        for side in (0, 1):
            if self.unstarred[side]:
                yield 0, side, self.grouped[side], True
            self.grouped[side] = self.unstarred[side] = self.passed[side] = 0


def rows(closings):
    """Return closings as a list of tuples."""
    return list(zip(*(column.tolist() for column in closings), strict=True))


@given(st.lists(SIDES, max_size=4), st.integers(0, 9), st.integers(1, 6), LIMIT, st.integers(3, 4))
def test_groups_end_as_the_ingress_says(parts, period, probes, limit, bits):
    grouper = Grouper(Ordering(period), probes=probes, limit=limit, probe_bits=bits)
    naive = NaiveGrouper(period, probes, limit, bits)
    for part in parts:
        closings = grouper.feed(np.array(part, np.uint8))
        assert rows(closings) == list(naive.feed(part))
        kinds = [str(column.dtype) for column in closings]
        assert kinds == ["int64", "int64", "int64", "bool"]
    for _ in range(2):
        assert rows(grouper.finish()) == list(naive.finish())
    assert rows(grouper.feed(np.array([1], np.uint8))) == list(naive.feed([1]))


@pytest.mark.parametrize("probes", [1, 2, 3, 4])
@pytest.mark.parametrize("limit", [None, 1, 3, 7])
def test_groups_stay_open_from_part_to_part(probes, limit):
    rng = np.random.default_rng(probes)
    for period in range(6):
        grouper = Grouper(Ordering(period), probes=probes, limit=limit, probe_bits=3)
        naive = NaiveGrouper(period, probes, limit, 3)
        for _ in range(12):
            part = (rng.random(rng.integers(0, 9)) < rng.random()).astype(np.uint8)
            assert rows(grouper.feed(part)) == list(naive.feed(part.tolist()))
        closed = grouper.finish()
        assert [str(column.dtype) for column in closed] == ["int64", "int64", "int64", "bool"]
        assert rows(closed) == list(naive.finish())


def test_unless_said_otherwise_a_probe_is_a_full_group():
    closed = Grouper(Ordering(2)).feed(np.zeros(2, np.uint8))
    assert rows(closed) == [(0, Side.R, 1, False), (1, Side.R, 1, True)]


def test_a_word_that_closes_both_groups_closes_that_of_r_first():
    grouper = Grouper(Ordering.relaxed(2), probes=2, limit=2)
    assert rows(grouper.feed(np.array([1, 0, 0], np.uint8))) == [
        (2, Side.R, 2, True),
        (2, Side.S, 1, True),
    ]


@given(SIDES, st.integers(0, 9), st.integers(1, 4), LIMIT, st.integers(2, 4), st.integers(1, 3))
def test_each_result_leaves_once_with_the_group_of_its_probe(
    sides, period, probes, limit, bits, cores
):
    arrivals = Arrivals(np.array(sides, np.uint8), {"x": np.arange(len(sides)) % 3})
    matches = reference_join(arrivals, DifferenceBand({}), CountWindow(5))
    options = {"probes": probes, "limit": limit, "probe_bits": bits}
    groups = list(punctuate(matches, arrivals, Ordering(period), cores=cores, **options))
    naive = NaiveGrouper(period, probes, limit, bits)
    closed = [closing[1:] for closing in (*naive.feed(sides), *naive.finish())]
    assert [(group.side, len(group.probes), group.star) for group in groups] == closed
    everything = [index for group in groups for index in group.matches.tolist()]
    assert sorted(everything) == list(range(len(matches)))
    for side in Side:
        probed = [p for group in groups if group.side == side for p in group.probes.tolist()]
        assert probed == np.flatnonzero(arrivals.side == side).tolist()
    for group in groups:
        assert set(matches.probe[group.matches]) <= set(group.probes.tolist())
        assert len(group.probes) <= probes
        stored = arrivals.ordinals[matches.stored[group.matches]]
        keys = [
            (int(o) % cores, int(o) // cores, int(p))
            for o, p in zip(stored, matches.probe[group.matches], strict=True)
        ]
        assert keys == sorted(keys)


@pytest.mark.parametrize("cores", [1, 3])
def test_in_outer_order_stars_follow_the_arrivals(cores):
    rng = np.random.default_rng(1)
    arrivals = Arrivals(rng.integers(0, 2, 50), {"x": rng.integers(0, 4, 50)})
    matches = reference_join(arrivals, DifferenceBand({}), CountWindow(6))
    groups = list(punctuate(matches, arrivals, Ordering.outer(), cores=cores))
    assert [group.side for group in groups] == arrivals.side.tolist()
    assert [group.probes.tolist() for group in groups] == [[i] for i in range(50)]
    assert all(group.star for group in groups)


def test_unless_said_otherwise_there_is_one_core_and_a_group_is_a_probe():
    arrivals = Arrivals(np.array([0, 0, 0, 1], np.uint8), {"x": np.zeros(4, np.int64)})
    matches = reference_join(arrivals, DifferenceBand({}), CountWindow(6))
    groups = list(punctuate(matches, arrivals, Ordering.outer()))
    assert [len(group.probes) for group in groups] == [1, 1, 1, 1]
    assert matches.stored[groups[-1].matches].tolist() == [0, 1, 2]


@pytest.mark.parametrize("bits", [None, 0, 1])
def test_without_order_the_end_has_a_star_per_side(bits):
    arrivals = Arrivals(np.array([1, 0, 1], np.uint8), {"x": np.zeros(3, np.int64)})
    matches = reference_join(arrivals, DifferenceBand({}), CountWindow(6))
    groups = list(punctuate(matches, arrivals, Ordering.none(), probe_bits=bits))
    stars = [group for group in groups if group.star]
    assert [(group.side, len(group.probes)) for group in stars] == [(Side.R, 0), (Side.S, 0)]
    assert [group.probes.tolist() for group in groups if not group.star] == [[0], [1], [2]]
