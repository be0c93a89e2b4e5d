# SPDX-License-Identifier: Apache-2.0
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from tests.soak import matching
from tests.soak.matching import NARROW, equal_pairs, limits, pairs_within
from tests.soak.results import order_of
from tests.soak.stars import group_ends

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
    least, most = (data.draw(st.lists(bound, min_size=3, max_size=3)) for _ in range(2))
    number = data.draw(st.lists(st.integers(0, 2), min_size=len(values), max_size=len(values)))
    low, high = limits(np.array(values, np.uint64), bits, least, most, np.array(number))
    for value, n, begin, end in zip(values, number, low.tolist(), high.tolist(), strict=True):
        exact = max(value + least[n], 0), min(value + most[n], top)
        if exact[0] > exact[1]:
            assert begin > end
        else:
            assert (begin, end) == exact


@pytest.mark.parametrize("narrow", [-1, NARROW], ids=["in blocks", "one by one"])
@given(steps=SPANS, seed=st.integers(0, 1 << 31))
def test_pairs_are_those_of_two_loops(narrow, steps, seed):
    random = np.random.default_rng(seed)
    low, high = spans(steps)
    count = int(high[-1]) + 1 if len(high) else 1
    stored, probes = ([random.integers(0, 3, n).astype(np.uint64) for _ in range(2)]
                      for n in (count, len(low)))  # fmt: skip
    equal = {(n, place) for n in range(len(low)) for place in range(low[n], high[n])
             if all(probes[f][n] == stored[f][place] for f in range(2))}  # fmt: skip
    with patch.object(matching, "NARROW", narrow):
        assert set(zip(*equal_pairs(stored, probes, low, high), strict=True)) == equal
    ranges = [(probe, probe + np.uint64(1)) for probe in probes]
    beyond = [s.astype(int) - p.astype(int)[:, None] for s, p in zip(stored, probes, strict=True)]
    near = {(n, place) for n in range(len(low)) for place in range(low[n], high[n])
            if all(0 <= field[n, place] <= 1 for field in beyond)}  # fmt: skip
    with patch.object(matching, "NARROW", narrow):
        found = list(zip(*pairs_within(stored, ranges, low, high), strict=True))
    assert set(found) == near
    assert len(found) == len(near)


@given(
    st.lists(st.booleans(), max_size=60),
    st.lists(st.integers(0, 60), max_size=3),
    st.integers(1, 5),
    st.integers(1, 6),
)
def test_groups_end_as_a_count_of_tuples_says(sides, closings, size, patience):
    """Tuple n has moment 2 n, and a word that closes groups after it 2 n + 1."""
    closings = sorted({*(2 * after + 1 for after in closings), 2 * len(sides) + 1})
    expected, probes, others = [], [], 0
    for moment in range(2 * len(sides) + 2):
        if moment % 2 == 0 and moment < 2 * len(sides):
            if sides[moment // 2]:
                others += bool(probes)
            else:
                probes.append(moment)
        if probes and (len(probes) == size or others == patience or moment in closings):
            expected.append((probes[0], moment))
            probes, others = [], 0
    mine, theirs = (np.array([2 * n for n, side in enumerate(sides) if side == other], np.int64)
                    for other in (False, True))  # fmt: skip
    closing = np.array(closings)[np.searchsorted(closings, mine)]
    begins, ends = group_ends(
        mine, theirs, closing, *(np.full(len(mine), number) for number in (size, patience))
    )
    assert list(zip(mine[begins].tolist(), ends.tolist(), strict=True)) == expected


@given(st.lists(st.tuples(*[st.integers(0, 1 << 40)] * 3), max_size=20), st.booleans())
def test_order_is_by_the_first_key_then_by_the_others(rows, small):
    keys = np.array(rows, np.int64).reshape(-1, 3) % (3 if small else 1 << 41)
    order = order_of(*keys.T).tolist()
    assert order == sorted(range(len(rows)), key=lambda n: keys[n].tolist())
