# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import pandas as pd
import pytest

from host import UsageError
from host.reference.asof import reference_asof
from host.reference.types import NO_ROW, Direction

KEYS = st.sampled_from(["a", "b", None])
ROWS = st.lists(st.tuples(st.integers(-6, 6), KEYS), max_size=12)
DIRECTION = st.sampled_from(Direction)
TOLERANCE = st.none() | st.integers(0, 5)


def closest(row, right, direction, tolerance, exact):
    """Return the right row of one left row, by the words of the definition."""
    time, key = row
    candidates = [
        (other - time, number)
        for number, (other, theirs) in enumerate(right)
        if key is not None and theirs == key and (exact or other != time)
    ]
    if tolerance is not None:
        candidates = [(d, number) for d, number in candidates if abs(d) <= tolerance]
    earlier = max(((d, n) for d, n in candidates if d <= 0), default=None)
    later = min(((d, n) for d, n in candidates if d >= 0), default=None)
    wanted = {"backward": [earlier], "forward": [later], "nearest": [earlier, later]}
    found = [pair for pair in wanted[direction.value] if pair is not None]
    return min(found, key=lambda pair: abs(pair[0]), default=(0, NO_ROW))[1]


@given(ROWS, ROWS, DIRECTION, TOLERANCE, st.booleans())
def test_it_is_the_definition(left, right, direction, tolerance, exact):
    expected = [closest(row, right, direction, tolerance, exact) for row in left]
    assert reference_asof(left, right, direction, tolerance=tolerance, exact=exact) == expected


def by_pandas(left, right, direction, tolerance, exact):
    """Return the same by pandas, whose inputs are sorted and have no null keys."""
    frames = [pd.DataFrame(rows, columns=["time", "key"]) for rows in (left, right)]
    frames[1]["number"] = range(len(right))
    merged = pd.merge_asof(
        *frames,
        on="time",
        by="key",
        direction=direction.value,
        tolerance=tolerance,
        allow_exact_matches=exact,
    )
    return [NO_ROW if number is pd.NA or number != number else int(number)
            for number in merged["number"]]  # fmt: skip


SORTED = st.lists(
    st.tuples(st.integers(-6, 6), st.sampled_from("ab")), min_size=1, max_size=12
).map(lambda rows: sorted(rows, key=lambda row: row[0]))


@given(SORTED, SORTED, DIRECTION, TOLERANCE, st.booleans())
def test_it_is_the_merge_asof_of_pandas(left, right, direction, tolerance, exact):
    found = reference_asof(left, right, direction, tolerance=tolerance, exact=exact)
    assert found == by_pandas(left, right, direction, tolerance, exact)


def test_the_names_of_the_directions_are_those_of_pandas():
    assert [Direction.of(name) for name in ("backward", "Forward", "nearest")] == list(Direction)
    with pytest.raises(UsageError, match="direction must be one of 'backward', .* not 'ahead'"):
        Direction.of("ahead")
