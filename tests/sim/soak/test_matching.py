# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import numpy as np

from sim.soak.groups import group_ends
from sim.soak.matching import equal_pairs, limits, pairs_within

SPANS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=30)


def spans(steps):
    """Return spans whose ends never fall."""
    low = np.cumsum([0] * (not steps) + [begin for begin, _ in steps])[: len(steps)]
    high = np.maximum.accumulate(low + [width for _, width in steps]) if steps else low
    return low.astype(np.int64), high.astype(np.int64)


@given(st.integers(1, 64), st.data())
def test_limits_are_those_of_integers_without_bounds(bits, data):
    top = (1 << bits) - 1
    bound = st.integers(-2 * top - 3, 2 * top + 3)
    values = data.draw(st.lists(st.integers(0, top), min_size=1, max_size=5))
    least, most = data.draw(bound), data.draw(bound)
    low, high = limits(np.array(values, np.uint64), bits, least, most)
    for value, begin, end in zip(values, low.tolist(), high.tolist(), strict=True):
        exact = max(value + least, 0), min(value + most, top)
        if exact[0] > exact[1]:
            assert begin > end
        else:
            assert (begin, end) == exact


@given(SPANS, st.integers(0, 1 << 31))
def test_pairs_are_those_of_two_loops(steps, seed):
    random = np.random.default_rng(seed)
    low, high = spans(steps)
    count = int(high[-1]) + 1 if len(high) else 1
    stored, probes = ([random.integers(0, 3, n).astype(np.uint64) for _ in range(2)]
                      for n in (count, len(low)))  # fmt: skip
    equal = {(n, place) for n in range(len(low)) for place in range(low[n], high[n])
             if all(probes[f][n] == stored[f][place] for f in range(2))}  # fmt: skip
    assert set(zip(*equal_pairs(stored, probes, low, high), strict=True)) == equal
    ranges = [(probe, probe + np.uint64(1)) for probe in probes]
    beyond = [s.astype(int) - p.astype(int)[:, None] for s, p in zip(stored, probes, strict=True)]
    near = {(n, place) for n in range(len(low)) for place in range(low[n], high[n])
            if all(0 <= field[n, place] <= 1 for field in beyond)}  # fmt: skip
    found = list(zip(*pairs_within(stored, ranges, low, high), strict=True))
    assert set(found) == near
    assert len(found) == len(near)


@given(st.lists(st.booleans(), max_size=60), st.integers(2, 5), st.integers(1, 6))
def test_groups_end_as_a_count_of_tuples_says(sides, size, patience):
    ends, probes, others, seen = [], 0, 0, 0
    for moment, other in enumerate(sides):
        probes, seen = probes + (not other), seen + (not other)
        others += other and probes > 0
        if probes == size or (probes and others == patience):
            ends.append((seen, moment))
            probes = others = 0
    mine, theirs = ([n for n, other in enumerate(sides) if other == is_other]
                    for is_other in (False, True))  # fmt: skip
    assert group_ends(mine, theirs, size, patience) == ends
