# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from host import Arrivals, Side, UsageError
from host.errors import OrderError


def test_on_a_tie_r_arrives_first_then_input_order_counts():
    r = {"x": np.array([10, 11, 12])}
    s = {"x": np.array([20, 21])}
    merged = Arrivals.merge(r, s, [5, 5, 7], [5, 6])
    assert merged.keys["x"].tolist() == [10, 11, 20, 21, 12]
    assert merged.side.tolist() == [0, 0, 1, 1, 0]
    assert merged.timestamp.tolist() == [5, 5, 5, 6, 7]
    assert merged.ordinals.tolist() == [0, 1, 0, 1, 2]


def test_an_empty_side_merges():
    none = {"x": np.zeros(0, np.uint64)}
    merged = Arrivals.merge({"x": np.array([3], np.uint64)}, none, np.array([1], np.uint64), [])
    assert merged.keys["x"].tolist() == [3]
    assert len(Arrivals.merge(none, none, [], [])) == 0


def test_narrow_integers_are_widened():
    arrivals = Arrivals(np.array([0, 1]), {"x": np.array([1, 2], np.int8)}, np.array([1, 1], "u1"))
    assert arrivals.side.dtype == np.uint8
    assert arrivals.keys["x"].dtype == np.int64
    assert arrivals.timestamp.dtype == np.uint64


def test_time_that_goes_backwards_is_named():
    with pytest.raises(OrderError, match=r"row 2 .* has 4 after 5") as caught:
        Arrivals([0, 1, 0], {}, [1, 5, 4])
    assert (caught.value.position, caught.value.previous, caught.value.value) == (2, 5, 4)
    with pytest.raises(OrderError, match="side S") as caught:
        Arrivals.merge({}, {}, [1, 2], [3, 2])
    assert caught.value.where is Side.S


@pytest.mark.parametrize(
    ("side", "column"),
    [([0, 2], [1, 2]), ([0, 1], [1, 2, 3]), ([0, 1], [0.5, 1.0]), ([[0, 1]], [1, 2])],
)
def test_wrong_arrays_are_refused(side, column):
    with pytest.raises(UsageError):
        Arrivals(np.array(side), {"x": np.array(column)})
