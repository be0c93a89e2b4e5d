# SPDX-License-Identifier: Apache-2.0
"""The model that circuits are compared with answers as the reference operator of the host does."""

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from host.operators.meaning import reference_results
from host.reference.operator import Arrival
from tests.hdl.aggregate.operators import REDUCTIONS, operator
from tests.hdl.aggregate.window_model import Windows, expected_windows

TUPLES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3), st.integers(-128, 127)))


@pytest.mark.few(2)
@pytest.mark.parametrize(("size", "advance"), [(12, 3), (10, 4), (5, 5)])
@settings(max_examples=25, deadline=None)
@given(tuples=TUPLES)
def test_windows_by_definition_are_those_of_the_reference(size, advance, tuples):
    described = operator(*REDUCTIONS, size=size, advance=advance)
    pane = described.pane
    windows = Windows(pane=pane, size=size // pane, advance=advance // pane)
    arrivals = []
    for time, item, v in sorted(tuples, key=lambda one: one[0]):
        windows.tuples.append((time, item, {"item": item, "v": v, "timestamp": time}))
        arrivals.append(Arrival(time, {"item": item, "v": v}))
    expected = [
        (result.timestamp, result.key[0], result.values)
        for result in reference_results(described, arrivals)
    ]
    found = expected_windows(windows, cores=1, operator=described)
    assert [result for result in found if result[1] is not None] == expected
