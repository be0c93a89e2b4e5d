# SPDX-License-Identifier: Apache-2.0

from functools import reduce

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from host.operators import panes
from host.operators.panes import Cells, cells_of, reduce_segments


def last_digits(a, b):
    """Combine associatively, and not as any function of NumPy does."""
    return np.maximum(a % 10, b % 10)


COMBINES = [np.add, np.minimum, np.maximum, last_digits]
TUPLES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(-6, 20), st.integers(0, 99)), min_size=1, max_size=40
)


def parts(tuples, combines=tuple(COMBINES), dtype=np.int64):
    keys, times, values = np.array(tuples, np.int64).reshape(-1, 3).T
    return keys, times, [(values % 10).astype(dtype) for _ in combines], combines


def cells(tuples, combines=tuple(COMBINES), dtype=np.int64):
    return cells_of(*parts(tuples, combines, dtype))


def expected(tuples, length, advance, first, last):
    found = {}
    for key, pane, value in tuples:
        for window in range(first, last + 1):
            if window * advance <= pane < window * advance + length:
                found.setdefault((window, key), []).append(value % 10)
    combine = [sum, min, max, lambda values: reduce(lambda a, b: max(a % 10, b % 10), values)]
    return [(place, [of(values) for of in combine]) for place, values in sorted(found.items())]


@pytest.mark.few(4)
@pytest.mark.parametrize("sparsest", [0, 1 << 40], ids=["ranges", "sweep"])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize("count", [1, 4], ids=["a sum, which slides", "all"])
@settings(max_examples=60)
@given(
    tuples=TUPLES,
    length=st.integers(1, 6),
    advance=st.integers(1, 6),
    first=st.integers(-9, 9),
    last=st.integers(-3, 22),
)
def test_both_ways_give_every_window_that_is_asked_for(
    sparsest, count, dtype, tuples, length, advance, first, last
):
    advance = min(advance, length)
    combines = COMBINES[:count]
    made = cells(tuples, combines, dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(panes, "_SPARSEST", sparsest)
        got = made.windows(length, advance, combines, first=first, last=last)
    states = list(zip(*(at.tolist() for at in got.states), strict=True))
    places = zip(got.window.tolist(), got.key.tolist(), strict=True)
    wanted = expected(tuples, length, advance, first, last)
    assert [(place, [*state]) for place, state in zip(places, states, strict=True)] == [
        (place, values[:count]) for place, values in wanted
    ]


def test_many_windows_of_few_cells_are_not_swept():
    made = cells([(0, pane, 1) for pane in range(30)], (np.add,))
    assert made.fills(4, 1, 33) is False, "more windows than cells are not worth while"
    assert made.fills(4, 1, 30)
    assert made.fills(65, 1, 30) is False


@settings(max_examples=60)
@given(TUPLES, TUPLES, st.integers(-6, 21))
def test_cells_with_more_tuples_are_the_cells_of_all(one, other, first):
    merged = cells(one).with_tuples(*parts(other))
    whole = cells(one + other)
    for got in (merged, Cells.none(len(COMBINES)).with_tuples(*parts(one + other))):
        assert got.key.tolist() == whole.key.tolist()
        assert got.pane.tolist() == whole.pane.tolist()
        assert [at.tolist() for at in got.states] == [at.tolist() for at in whole.states]
    assert merged.with_tuples(*parts([])) is merged
    assert set(merged.after(first).pane.tolist()) == {p for _, p, _ in one + other if p >= first}
    places = list(zip(whole.key.tolist(), whole.pane.tolist(), strict=True))
    assert places == sorted(set(places))


@given(st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=9), max_size=9))
def test_segments_are_reduced_each_by_itself(segments):
    values = np.array([value for segment in segments for value in segment], np.int64)
    lengths = np.array([len(segment) for segment in segments], np.int64)
    begins = np.cumsum(lengths) - lengths
    given = values.copy()
    for combine, of in ((np.add, sum), (lambda a, b: a + b, sum), (lambda a, b: a | b, None)):
        want = [of(s) if of else reduce(lambda a, b: a | b, s) for s in segments]
        assert reduce_segments(values, begins, combine).tolist() == want
    assert (values == given).all(), "the input is not written into"
