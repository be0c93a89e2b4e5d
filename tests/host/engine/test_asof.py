# SPDX-License-Identifier: Apache-2.0
"""The as-of join of the software engine finds the rows of the reference, however rows lie."""

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from host.engine.asof import AsofSearch, Times
from host.reference.asof import reference_asof
from host.reference.types import Direction
from tests.timing import least_seconds

TIME = st.integers(0, 8) | st.sampled_from([(1 << 64) - 1, (1 << 64) - 2, 1 << 63])
ROWS = st.lists(st.tuples(TIME, st.integers(0, 2)), max_size=15).map(
    lambda rows: sorted(rows, key=lambda row: row[0])
)
TOLERANCE = st.none() | st.integers(0, 4) | st.sampled_from([1 << 63, (1 << 64) - 1, 1 << 65])


def times(rows, keyed):
    time, key = (np.array([row[place] for row in rows], np.uint64) for place in (0, 1))
    return Times(time, key.astype(np.int64) if keyed else None)


@given(ROWS, ROWS, st.sampled_from(Direction), TOLERANCE, st.booleans(), st.booleans())
def test_it_agrees_with_the_reference(left, right, direction, tolerance, exact, keyed):
    search = AsofSearch(direction, tolerance, exact)
    found = search.rows(times(left, keyed), times(right, keyed))
    if not keyed:
        left, right = ([(time, 0) for time, _ in rows] for rows in (left, right))
    expected = reference_asof(left, right, direction, tolerance=tolerance, exact=exact)
    assert found.tolist() == expected


@given(
    ROWS, ROWS, st.sampled_from(Direction), TOLERANCE, st.booleans(), st.booleans(),
    st.sampled_from([0, 1, 3, 9, 1 << 63, (1 << 64) - 1]),
)  # fmt: skip
def test_what_is_settled_stays_and_what_is_not_needed_is_not_missed(
    left, right, direction, tolerance, exact, keyed, reached
):
    """Rows before a time are joined with those kept of them, and with all that come later."""
    search = AsofSearch(direction, tolerance, exact)
    cut = [[row for row in rows if row[0] < reached] for rows in (left, right)]
    here = [times(rows, keyed) for rows in cut]
    found = search.rows(*here)
    settled = search.settled(*here, found, reached)
    whole = search.rows(times(left, keyed), times(right, keyed))
    assert np.array_equal(found[settled], whole[: len(found)][settled])
    kept = search.needed(*here, ~settled, reached)
    numbers = np.concatenate([kept, np.arange(len(cut[1]), len(right))])
    rest = [*np.array(range(len(cut[0])))[~settled], *range(len(cut[0]), len(left))]
    later = search.rows(
        times([left[row] for row in rest], keyed), times([right[row] for row in numbers], keyed)
    )
    given = np.where(later < 0, -1, numbers[later] if len(numbers) else -1)
    assert np.array_equal(given, whole[rest])


def uniform(rng, count):
    return rng.integers(0, count // 4, count)


def hot(rng, count):
    return np.where(rng.random(count) < 0.4, 0, rng.integers(0, count // 4, count))


def constant(rng, count):
    return np.zeros(count, np.int64)


def all_apart(rng, count):
    return rng.permutation(count)


def when(rng, count, clustered):
    spread = rng.normal(1 << 20, 100, count) if clustered else rng.integers(0, 1 << 30, count)
    return np.sort(spread.astype(np.uint64))


@pytest.mark.few(6)
@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("keys", [hot, constant, all_apart])
def test_no_distribution_of_keys_or_times_is_slow(keys, clustered, direction):
    rng, count = np.random.default_rng(7), 100_000
    search = AsofSearch(direction, 1 << 16)

    def seconds(own, close):
        sides = [Times(when(rng, count, close), own(rng, count)) for _ in range(2)]
        return least_seconds(lambda: search.rows(*sides), limit=0, turns=3)

    assert seconds(keys, clustered) < 5 * seconds(uniform, False)
