# SPDX-License-Identifier: Apache-2.0
"""A device finds the right rows that the reference names, on hardware one per core and left row."""

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host import UsageError, open_device
from host.devices import Device
from host.engine.asof import AsofSearch, Times
from host.errors import AcceleratorLimitError
from host.operators.asof import AsofJoin, DeviceRows
from host.protocol.manifest import Manifest
from host.query.queries import AsofQuery, Query
from host.reference.arrivals import Side
from host.reference.asof import reference_asof
from host.reference.types import Direction
from host.session.join import Join
from tests.host.session.test_driver_simulated import PARAMETERS
from tests.host.simulated_bundle import simulated_bundle
from tests.host.small_bundles import write_manifest

#: Three cores with windows of 60 tuples, which other files simulate as well.
INDEX = PARAMETERS["index, two in a word"]
LAST = (1 << 64) - 1


def same_as_reference(left, right, device, direction, tolerance, exact):
    """Compare a device with the reference; return what drove it. Sides are (time, key) pairs."""
    sides = [
        Times(
            np.array([time for time, _ in rows], np.uint64),
            np.array([key for _, key in rows], np.int64),
        )
        for rows in (left, right)
    ]
    driven = DeviceRows(*sides, device, tolerance=tolerance)
    found = AsofSearch(direction, tolerance, exact).rows(*sides, driven)
    assert found.tolist() == reference_asof(
        left, right, direction, tolerance=tolerance, exact=exact
    )
    return driven


def random_rows(rng, count, *, keys, times):
    when = np.sort(rng.integers(0, times, count)).tolist()
    return list(zip(when, rng.integers(0, keys, count).tolist(), strict=True))


@pytest.fixture(scope="module")
def modelled(tmp_path_factory):
    """The software device of the small index."""
    with open_device(f"software:{write_manifest(INDEX, tmp_path_factory.mktemp('m'))}") as device:
        yield device


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """The small index, simulated."""
    with open_device(simulated_bundle(INDEX, tmp_path_factory.mktemp("asof") / "bundle")) as device:
        yield device


TIMES = st.integers(0, 12) | st.integers(LAST - 3, LAST)
ROWS = st.lists(st.tuples(TIMES, st.integers(0, 2)), max_size=80).map(
    lambda rows: sorted(rows, key=lambda row: row[0])
)


@given(
    ROWS,
    ROWS,
    st.sampled_from(Direction),
    st.none() | st.integers(0, 4) | st.integers(LAST - 9, LAST + 9),
    st.booleans(),
)
def test_the_model_of_an_index_finds_the_rows_of_the_reference(
    modelled, left, right, direction, tolerance, exact
):
    same_as_reference(left, right, modelled, direction, tolerance, exact)


@pytest.mark.few(1)
@pytest.mark.parametrize("keys", [1, 9])
@pytest.mark.parametrize("direction", Direction)
def test_a_simulated_index_finds_the_rows_of_the_reference(simulated, direction, keys):
    rng = np.random.default_rng([keys, list(Direction).index(direction)])
    for tolerance, exact in ((None, True), (20, False)):
        left, right = (random_rows(rng, 600, keys=keys, times=400) for _ in range(2))
        driven = same_as_reference(left, right, simulated, direction, tolerance, exact)
        assert driven.cycles > 0
        assert (driven.window == 60) == (tolerance is None)


def test_a_core_answers_a_left_row_with_one_right_row(simulated):
    """There are 20 candidates of its key in the window of each core."""
    right = [(time, 0) for time in range(60)]
    left = [(60, 0)] * 50
    driven = same_as_reference(left, right, simulated, Direction.BACKWARD, None, True)
    # No left row is stored before a right one, so no right row finds anything.
    assert driven.counters["results"] == INDEX.cores * len(left)
    assert driven.looked_up == 0


def test_no_more_cores_answer_than_the_window_needs(simulated):
    right = [(time, 0) for time in range(60)]
    left = [(60, 0)] * 50
    for rows, cores in ((20, 1), (21, 2), (41, 3)):
        driven = same_as_reference(left, right, simulated, Direction.BACKWARD, rows, True)
        assert (driven.window, driven.counters["results"]) == (rows, cores * len(left))


def test_left_rows_whose_right_row_has_left_the_window_are_looked_up(simulated):
    right = [(0, 7), *((time, 1) for time in range(1, 200))]
    left = [(199, 1), (199, 7), (199, 5), (250, 7)]
    driven = same_as_reference(left, right, simulated, Direction.BACKWARD, None, True)
    assert driven.window == INDEX.cores * INDEX.window.sub_window
    assert driven.looked_up == 3  # that of key 5 has no right row at all
    # Rows beyond the tolerance need no lookup: so many fit.
    driven = same_as_reference(left, right, simulated, Direction.BACKWARD, 30, True)
    assert (driven.looked_up, driven.window) == (0, 31)


class Few(Device):
    """A device that takes few words at a time, and counts them."""

    def __init__(self, inner):
        self.inner, self.uri, self.manifest = inner, f"few({inner.uri})", inner.manifest
        self.taken = 0

    def exchange(self, words, results, *, cycles, stamps=None):
        done = self.inner.exchange(words[:3_000], results, cycles=cycles, stamps=stamps)
        self.taken += done.accepted
        return done

    def counters(self):
        return self.inner.counters()

    def close(self):
        self.inner.close()


def many_rows(rows):
    """Return two tables with a row at every time, and how many of a key come before each row."""
    rng = np.random.default_rng(rows)
    return [
        pa.table(
            {"t": np.arange(rows), f"k{name}": rng.integers(0, 9, rows), name: np.arange(rows)}
        )
        for name in ("a", "b")
    ]


def test_results_come_while_the_device_has_words_to_take(modelled):
    """Each part is what a search on the host finds for its left rows, in their order."""
    left, right = many_rows(60_000)
    for how in ("left", "inner"):
        query = AsofQuery(time="t", on=[("ka", "kb")], within=40, how=how)
        device = Few(modelled)
        join = AsofJoin(left, right, query, device)
        taken, parts = [], []
        for batch in join.batches():
            taken.append(device.taken)
            parts.append(batch)
        assert len(parts) > 2
        assert taken[0] < device.taken / 2
        found = pa.Table.from_batches(parts)
        assert found == AsofJoin(left, right, query).table()
        # What has been found is not asked for again, and a left row has one part.
        assert join.rows[0].tolist() == found["a"].to_pylist()
        assert taken[-1] == device.taken


def test_a_reader_of_results_may_stop(modelled):
    left, right = many_rows(60_000)
    query = AsofQuery(time="t", on=[("ka", "kb")], within=40)
    device = Few(modelled)
    batches = AsofJoin(left, right, query, device).batches()
    first = next(batches)
    batches.close()
    assert 0 < first.num_rows < left.num_rows
    again = AsofJoin(left, right, query, device).table()
    assert again == AsofJoin(left, right, query).table()


def test_tables_are_joined_on_a_device(simulated):
    trades = pa.table({"time": [3, 1, 2], "symbol": ["a", "b", None], "price": [1, 2, 3]})
    quotes = pa.table({"at": [1, 2, 2], "symbol": ["a", "a", None], "bid": [5, 6, 7]})
    query = AsofQuery(time=("time", "at"), on="symbol", how="inner")
    join = AsofJoin(trades, quotes, query, simulated)
    assert join.table().select(["price", "bid"]).to_pylist() == [{"price": 1, "bid": 6}]
    # A row with a null key has no key, so it is not sent.
    assert (join.found_by.counters["tuples_r"], join.found_by.counters["tuples_s"]) == (2, 2)
    without_keys = AsofJoin(trades, quotes, AsofQuery(time=("time", "at")), simulated)
    assert without_keys.table()["bid"].to_pylist() == [5, 7, 7]
    assert AsofJoin(trades[:0], quotes, query, simulated).table().num_rows == 0


def test_more_keys_than_a_field_holds_are_an_error(simulated):
    keys = pa.table({"t": np.arange(300), "k": np.arange(300)})
    query = AsofQuery(time="t", on="k")
    with pytest.raises(
        UsageError, match="keys have 300 distinct values.*build a bundle whose first field has 9 b"
    ):
        AsofJoin(keys, keys, query, simulated).table()


def test_a_chain_of_cores_is_refused(monkeypatch, modelled):
    none = Times(np.zeros(0, np.uint64))
    monkeypatch.setattr(
        Manifest, "chain", property(lambda _: type("Chain", (), {"architecture": "handshake"}))
    )
    with pytest.raises(AcceleratorLimitError, match="handshake join.*engine 'index'"):
        DeviceRows(none, none, modelled)


def test_newest_matches_are_for_inner_joins(modelled):
    rows = pa.table({"f0": [1]})
    query = Query(on="f0", time="f0", rows=1, how="left")
    with pytest.raises(UsageError, match="how must be 'inner', not 'left'"):
        Join(rows, rows, query, modelled, newest_of=Side.R)
