# SPDX-License-Identifier: Apache-2.0
"""Bands over integers of 64 bits are exact, wherever the values lie, in fields of any width."""

from hypothesis import example, given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host import CountWindow, TimeWindow, open_device
from host.pipeline import Pipeline
from host.query.quantities import Duration
from host.query.queries import Query
from host.session.intake import TaggedLayout
from host.session.join import Join
from tests.host.tables import bundle, naive_join
from tests.windows import over

LIMITS = {pa.int64(): (-(1 << 63), (1 << 63) - 1), pa.uint64(): (0, (1 << 64) - 1)}
EDGES = [0, 1, 1 << 32, (1 << 62) + 1, (1 << 63) - 1, -(1 << 63), 1 << 63, (1 << 64) - 1]


@st.composite
def wide_bands(draw):
    """Return both columns, their types and a band, with many differences near its bounds."""
    scale = draw(st.sampled_from([1, 50, 10**6, 1 << 40, 1 << 61]))
    place = draw(st.sampled_from([0, 10**15, (1 << 63) - 9 * scale, -(1 << 63)]))
    steps = st.integers(-20, 20).map(lambda step: place + step * scale // 4)
    near = st.integers(-2, 2)
    values = st.none() | st.builds(int.__add__, steps, near) | st.sampled_from(EDGES)
    sides, kinds = [], []
    for _ in range(2):
        kinds.append(draw(st.sampled_from(list(LIMITS))))
        low, high = LIMITS[kinds[-1]]
        column = draw(st.lists(values, max_size=12))
        sides.append([v if v is None or low <= v <= high else low for v in column])
    bound = st.none() | st.builds(int.__add__, st.integers(-9, 9).map(lambda n: n * scale), near)
    bounds = draw(st.tuples(bound, bound).filter(lambda both: both != (0, 0)))
    return sides, kinds, bounds


@pytest.fixture(scope="module", params=[("x32", 3, 50), ("u9", 1, 40), ("u64", 1, 64)])
def device(request, tmp_path_factory):
    keys, cores, sub_window = request.param
    folder = tmp_path_factory.mktemp("wide")
    shape = {"cores": cores, "sub_window": sub_window, "timestamp_bits": 32}
    return f"software:{bundle(folder, keys=(keys,), **shape)}"


def table_of(values, kind):
    count = len(values)
    return pa.table({"t": np.arange(count), "x": pa.array(values, kind), "row": np.arange(count)})


@pytest.mark.few(1)
@settings(deadline=None, max_examples=40)
@given(wide_bands(), st.booleans())
@example(([[0, (1 << 63) - 1], [-(1 << 63)]], [pa.int64()] * 2, (0, None)), False)
@example(([[(1 << 64) - 1], [-(1 << 63)]], [pa.uint64(), pa.int64()], (1, (1 << 64) + 1)), False)
@example(([[5], [3]], [pa.int64()] * 2, (3, 1)), True)
def test_pairs_are_those_of_a_loop_over_the_rows(device, band, timed):
    sides, kinds, bounds = band
    left, right = (table_of(*side) for side in zip(sides, kinds, strict=True))
    query = Query(
        band=[("x", "x", *bounds)],
        time="t",
        **over(TimeWindow(8) if timed else CountWindow(9)),
        sorted=True,
    )
    streams = [Pipeline.of_table(table, sorted_by=["t"]).batch_rows(3) for table in (left, right)]
    with open_device(device) as opened:
        found = streams[0].join(streams[1], query, opened).collect()
    pairs = zip(found["row"].to_pylist(), found["row_right"].to_pylist(), strict=True)
    assert list(pairs) == naive_join(left, right, query)


def test_columns_of_different_units_keep_their_order_beyond_the_ends(device):
    """Seconds beside microseconds: the ends of the field are the same instants for both."""
    seconds = pa.array([0, 10**6, 10**6 + 1], pa.int64()).cast(pa.timestamp("s"))
    micros = [0, 10**12 - 1, 10**12, 10**12 + 1, 10**12 + 999_999, 5]
    left = pa.table({"t": np.arange(3), "x": seconds, "row": np.arange(3)})
    right = table_of(micros, pa.int64())
    right = right.set_column(1, "x", right["x"].cast(pa.timestamp("us")))
    query = Query(
        band=[("x", "x", *(Duration(n * 1_000) for n in (-5, 5)))],
        time="t",
        rows=9,
        sorted=True,
    )
    streams = [Pipeline.of_table(table, sorted_by=["t"]).batch_rows(2) for table in (left, right)]
    with open_device(device) as opened:
        found = streams[0].join(streams[1], query, opened).collect()
    pairs = set(zip(found["row"].to_pylist(), found["row_right"].to_pylist(), strict=True))
    assert pairs == {(0, 0), (0, 5), (1, 1), (1, 2), (1, 3), (2, 4)}


def test_few_others_are_found_besides():
    """The accelerator's own results are those that it should have, and hardly more."""
    rng = np.random.default_rng(1)
    sides = [rng.normal(10.0**15, 1e9, 2_000).astype(np.int64) for _ in range(2)]
    tagged = pa.table(
        {
            "side": np.tile(np.array([0, 1], np.int8), 2_000),
            "t": np.arange(4_000),
            "x": np.stack(sides, axis=1).ravel(),
        }
    )
    columns = pa.schema([("t", pa.int64()), ("x", pa.int64())])
    layout = TaggedLayout(columns, columns, 1, shared=True)
    query = Query(
        band=[("x", "x", -50_000_000, 50_000_000)],
        time="t",
        rows=500,
        sorted=True,
    )
    with open_device("software:") as device:
        join = Join.of_tagged(tagged, layout, query, device)
        count = sum(batch.num_rows for batch in join.batches())
        found = join.counters()["results"]
    assert count > 20_000
    assert count <= found <= 1.05 * count
