# SPDX-License-Identifier: Apache-2.0
"""Bounded differences of floating-point numbers are exact, whatever the width of the key field."""

import math

from hypothesis import example, given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host import CountWindow, TimeWindow, open_device
from host.errors import UsageError
from host.operators.verification import reference_pairs
from host.pipeline import Pipeline
from host.query.quantities import Duration
from host.query.queries import Query, Term
from host.session.join import join_tables
from tests.host.tables import bundle, naive_join
from tests.windows import over

NAN, INF = math.nan, math.inf
ODD = st.sampled_from([None, NAN, INF, -INF, 0.0, -0.0, 1.7e308, -1.7e308, 5e-324, 2.0**60, 0.1])


def numbers(scale):
    """Numbers that often lie as far apart as the bounds allow, odd ones among them."""
    steps = st.integers(-40, 40).map(lambda step: step * scale / 8)
    return st.one_of(steps, steps.map(lambda step: step + 1e6 * scale), ODD, st.floats())


VALUES = st.sampled_from([1.0, 0.1, 1e-300, 1e300, 2.0**40]).flatmap(
    lambda scale: st.tuples(
        st.lists(numbers(scale), max_size=12),
        st.lists(numbers(scale), max_size=12),
        st.one_of(st.none(), st.integers(-9, 9).map(lambda step: step * scale / 4)),
        st.one_of(st.none(), st.integers(-9, 9).map(lambda step: step * scale / 4)),
    )
)


def holds(left, right, low, high):
    """As Spark compares: NaN is above all numbers, and a difference with NaN is NaN."""
    if left is None or right is None:
        return False
    difference = left - right
    above = low is None or math.isnan(difference) or difference >= low
    return above and (high is None or difference <= high)


@pytest.fixture(scope="module", params=[("x32", 3, 50), ("u9", 1, 40), ("u64", 1, 64)])
def device(request, tmp_path_factory):
    keys, cores, sub_window = request.param
    folder = tmp_path_factory.mktemp("floats")
    shape = {"cores": cores, "sub_window": sub_window, "timestamp_bits": 32}
    return f"software:{bundle(folder, keys=(keys,), **shape)}"


@pytest.mark.few(1)
@settings(deadline=None, max_examples=30)
@given(VALUES, st.booleans(), st.booleans())
@example(([INF, NAN], [-INF, INF, NAN], 0.0, None), False, True)
@example(([1.7e308], [-1.7e308], -1.7e308, 1.7e308), False, False)
@example(([1e299, None], [0.0], 2.5e299, -2.5e299), False, False)
@example(([2.0**60, 2.0**60 + 256], [2.0**60], 0.5, 300.0), False, True)
def test_pairs_are_those_of_a_loop_over_the_rows(device, values, narrow, timed):
    left, right, low, high = values
    if low == 0 and high == 0:
        high = 1.0
    kinds = (pa.float64(), pa.float32() if narrow else pa.float64())
    if narrow:
        with np.errstate(over="ignore"):
            right = [None if value is None else float(np.float32(value)) for value in right]
    tables = [
        pa.table(
            {"t": np.arange(len(side)), "x": pa.array(side, kind), "row": np.arange(len(side))}
        )
        for side, kind in zip((left, right), kinds, strict=True)
    ]
    query = Query(
        band=[("x", "x", low, high)],
        time="t",
        **over(TimeWindow(8) if timed else CountWindow(9)),
        sorted=True,
    )
    everything = naive_join(*tables, Query(time="t", **over(query.window), sorted=True))
    expected = [(r, s) for r, s in everything if holds(left[r], right[s], low, high)]
    with open_device(device) as opened:
        result = join_tables(*tables, query, opened)
        sides = [Pipeline.of_table(table, sorted_by=["t"]).batch_rows(3) for table in tables]
        streamed = sides[0].join(sides[1], query, opened).collect()
    assert list(zip(*(rows.tolist() for rows in result.pairs), strict=True)) == expected
    names = ["row", "row_right"]
    assert list(map(tuple, streamed.select(names).to_pandas().to_numpy())) == expected
    of_reference = reference_pairs(*tables, query)
    assert list(zip(*(rows.tolist() for rows in of_reference), strict=True)) == expected


def test_few_others_are_found_besides():
    """The accelerator's own results are those that it should have, and hardly more."""
    rng = np.random.default_rng(1)
    tables = [pa.table({"t": np.arange(2_000), "x": rng.normal(0.0, 1.0, 2_000)}) for _ in range(2)]
    query = Query(band=[("x", "x", -0.05, 0.05)], time="t", rows=500)
    with open_device("software:") as device:
        result = join_tables(*tables, query, device)
    assert len(result.pairs[0]) > 20_000
    assert len(result.pairs[0]) <= result.counters["results"] <= 1.05 * len(result.pairs[0])


def test_a_duration_does_not_bound_numbers():
    table = pa.table({"t": [1], "x": [0.5]})
    query = Query(band=[("x", "x", Duration(0), Duration(5))], time="t", rows=1)
    with (
        open_device("software:") as device,
        pytest.raises(UsageError, match="write a plain number"),
    ):
        join_tables(table, table, query, device)


@pytest.mark.parametrize("bound", [NAN, INF, "5", True])
def test_bounds_are_finite(bound):
    with pytest.raises(UsageError, match="must be a finite number"):
        Term("x", "x", bound, None)
