# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import numpy as np

from host.operators.asof import Times, closest_rows
from host.reference.asof import Direction, reference_asof

TIME = st.integers(0, 8) | st.sampled_from([(1 << 64) - 1, (1 << 64) - 2, 1 << 63])
ROWS = st.lists(st.tuples(TIME, st.integers(0, 2)), max_size=15)
TOLERANCE = st.none() | st.integers(0, 4) | st.sampled_from([1 << 63, (1 << 64) - 1, 1 << 65])


def times(rows, keyed):
    time, key = (np.array([row[place] for row in rows], np.uint64) for place in (0, 1))
    return Times(time, key.astype(np.int64) if keyed else None)


@given(ROWS, ROWS.map(sorted), st.sampled_from(Direction), TOLERANCE, st.booleans(), st.booleans())
def test_it_agrees_with_the_reference(left, right, direction, tolerance, exact, keyed):
    found = closest_rows(
        times(left, keyed), times(right, keyed), direction, tolerance=tolerance, exact=exact
    )
    if not keyed:
        left, right = ([(time, 0) for time, _ in rows] for rows in (left, right))
    expected = reference_asof(left, right, direction, tolerance=tolerance, exact=exact)
    assert found.tolist() == expected
