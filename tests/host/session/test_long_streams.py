# SPDX-License-Identifier: Apache-2.0
"""Rows and arrivals whose numbers pass 32 bits are joined as the first ones are."""

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host import Bounds, CountWindow, Side, TimeWindow, open_device
from host.engine.software import SoftwareEngine, Tuples
from host.errors import OrderError
from host.query.queries import Query
from host.session.intake import TaggedLayout, WindowGauge
from host.session.join import Join
from tests.host.tables import bundle

#: First numbers, so that those of the rows pass a power of two.
BEGINS = [(1 << bits) - 20 for bits in (31, 32, 40)]
ROWS = 60


def stream(seed, names="tk"):
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, 90, ROWS))
    table = pa.table(dict(zip(names, (times, rng.integers(0, 5, ROWS)), strict=True)))
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=7))


@pytest.fixture(scope="module")
def devices(tmp_path_factory):
    folder = bundle(tmp_path_factory.mktemp("b"), timestamp_bits=16, cores=2, sub_window=40)
    with open_device("software:") as software, open_device(f"software:{folder}") as words:
        yield software, words


def joined(make, first):
    """Return the rows of a join and the numbers of its pairs, less the first ones."""
    join = make(first)
    result = join.run()
    pairs = zip(result.pairs, first, strict=True)
    return result.table.to_pylist(), [np.where(rows < 0, rows, rows - at) for rows, at in pairs]


@pytest.mark.parametrize("begin", BEGINS)
@pytest.mark.parametrize("how", ["inner", "full", "left_anti"])
@pytest.mark.parametrize("window", [{"within": 9}, {"rows": 6}], ids=["within", "rows"])
@pytest.mark.parametrize("at", [0, 1], ids=["software engine", "words"])
def test_numbers_of_rows_pass_32_bits(devices, begin, how, window, at):
    query = Query(time="t", on="k", how=how, sorted=True, **window)

    def make(first):
        return Join(stream(1), stream(2), query, devices[at], first_rows=first)

    table, pairs = joined(make, (begin, begin + 3))
    expected, numbers = joined(make, (0, 0))
    assert len(table) > 3
    assert table == expected
    for mine, theirs in zip(pairs, numbers, strict=True):
        assert mine.tolist() == theirs.tolist()


@pytest.mark.parametrize("begin", BEGINS)
@pytest.mark.parametrize("at", [0, 1], ids=["software engine", "words"])
def test_numbers_of_tagged_rows_pass_32_bits(devices, begin, at):
    rng = np.random.default_rng(4)
    columns = {
        "side": pa.array(rng.integers(0, 2, ROWS), pa.int8()),
        "t": np.sort(rng.integers(0, 90, ROWS)),
        "k": rng.integers(0, 3, ROWS),
        "halo": np.arange(ROWS) < 9,
    }
    table = pa.table(columns)
    schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
    layout = TaggedLayout(schema, schema, first=1, shared=True, halo="halo")
    query = Query(time="t", on="k", within=9, how="full", sorted=True)

    def make(first):
        return Join.of_tagged(table, layout, query, devices[at], first_rows=first)

    found, expected = joined(make, (begin, begin)), joined(make, (0, 0))
    assert len(found[0]) > 20
    assert found[0] == expected[0]
    assert [rows.tolist() for rows in found[1]] == [rows.tolist() for rows in expected[1]]


@pytest.mark.parametrize("begin", [*BEGINS, (1 << 62) - 20])
@pytest.mark.parametrize("window", [CountWindow(7), TimeWindow(9)], ids=str)
def test_places_of_arrivals_pass_32_bits(begin, window):

    def pairs(first):
        engine = SoftwareEngine([Bounds(-1, 1)], window)
        found = []
        for block in range(4):
            own = np.random.default_rng(block)
            places = first + block * 40 + np.arange(40)
            sides = own.integers(0, 2, 40)
            times = (block * 40 + np.arange(40)).astype(np.uint64) // np.uint64(2)
            keys = own.integers(5, 12, 40).astype(np.uint64)
            tuples = {
                side: Tuples([keys[at]], times[at], places[at], places[at])
                for side in Side
                for at in [np.flatnonzero(sides == side)]
            }
            for pushed in engine.push(tuples):
                found += engine.found(pushed)
        return [
            np.concatenate([getattr(one, name) for one in found]) - first
            for name in ("place", "left", "right")
        ]

    assert len(pairs(0)[0]) > 50
    for mine, theirs in zip(pairs(begin), pairs(0), strict=True):
        assert mine.tolist() == theirs.tolist()


def test_a_row_out_of_order_is_named_by_its_number(devices):
    schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
    rows = pa.table([[1, 5, 3], [0, 0, 0]], schema=schema).to_batches()
    left = pa.RecordBatchReader.from_batches(schema, rows)
    query = Query(time="t", on="k", within=9, sorted=True)
    join = Join(left, stream(2), query, devices[0], first_rows=(1 << 32, 0))
    with pytest.raises(OrderError, match=f"row {(1 << 32) + 2} "):
        join.run()


class _Manifest:
    """What a gauge knows of an accelerator."""

    def __init__(self, capacity):
        self.capacity, self.engine = capacity, "scan"
        self.storage = type("Storage", (), {"cores": 1})


@given(
    st.lists(st.integers(0, 12), max_size=40), st.integers(1, 9), st.integers(0, 15),
    st.integers(1, 7),
)  # fmt: skip
def test_a_gauge_keeps_the_window_and_finds_the_first_row_without_room(
    steps, capacity, lifespan, size
):
    times = np.cumsum(steps).astype(np.uint64)
    gauge, found = WindowGauge(Side.R, lifespan, _Manifest(capacity)), None
    for begin in range(0, len(times), size):
        part = times[begin : begin + size]
        at = gauge.overflow(part)
        if at is not None:
            found = begin + at
            break
        last = part[-1]
        assert gauge.held == np.count_nonzero(times[: begin + len(part)] + lifespan >= last)
    full = (
        at
        for at in range(capacity, len(times))
        if int(times[at]) - int(times[at - capacity]) <= lifespan
    )
    assert found == next(full, None)
