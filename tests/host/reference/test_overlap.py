# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st

from host.reference.asof import reference_overlap

ROW = st.tuples(
    st.integers(-5, 5), st.none() | st.integers(0, 6), st.sampled_from(["a", "b", None])
).map(lambda row: (row[0], None if row[1] is None else row[0] + row[1], row[2]))
ROWS = st.lists(ROW, max_size=12)


def overlap(one, other, touching):
    """Say whether two intervals overlap, by the words of the definition."""
    if None in (one[1], other[1], one[2], other[2]) or one[2] != other[2]:
        return False
    if touching:
        return one[0] <= other[1] and other[0] <= one[1]
    return one[0] < other[1] and other[0] < one[1]


@given(ROWS, ROWS, st.booleans())
def test_it_is_the_definition_in_the_order_of_starts(left, right, touching):
    expected = [
        (l, r)
        for l, one in enumerate(left)
        for r, other in enumerate(right)
        if overlap(one, other, touching)
    ]

    def arrival(pair):
        places = [(left[pair[0]][0], 0, pair[0]), (right[pair[1]][0], 1, pair[1])]
        return max(places), min(places)

    found = reference_overlap(left, right, touching=touching)
    assert found == sorted(expected, key=arrival)
