# SPDX-License-Identifier: Apache-2.0
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from host import Ordering, UsageError, open_device
from host.devices import Device, Exchange
from host.devices.waiting import Deadline
from host.errors import CapacityError, DeviceError, DeviceTimeoutError
from host.operators.verification import compare_pairs, reference_pairs
from host.protocol.codecs import WordCodec
from host.protocol.segments import largest_window
from host.query.quantities import parse_duration
from host.query.queries import Query
from host.query.tables import output_schema
from host.session.join import Join, join_tables
from sim.scenarios import illegal_word
from tests.host.tables import bundle, naive_join
from tests.windows import over

SHAPES = {
    "one core": {"cores": 1, "sub_window": 64, "probes": 1},
    "groups": {"cores": 3, "sub_window": 20, "probes": 8, "lanes": 2},
    "seven": {"cores": 7, "sub_window": 9, "probes": 4, "fan_in": 2, "probe_bits": 2},
}


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """A bundle of each shape, for the software device: the hardware's own result words."""
    folder = tmp_path_factory.mktemp("bundles")
    return {
        name: bundle(
            folder / name.replace(" ", "_"), keys=("x16", "u8"), timestamp_bits=20, **shape
        )
        for name, shape in SHAPES.items()
    }


def random_table(rng, rows, spread=60, nulls=0.1):
    keys = rng.integers(-5, 6, rows)
    return pa.table(
        {
            "t": rng.integers(0, max(1, spread), rows),
            "x": pa.array(keys, mask=rng.random(rows) < nulls),
            "name": pa.array(rng.choice(["a", "b", "c"], rows), mask=rng.random(rows) < nulls),
            "row": np.arange(rows),
        }
    )


def rows_of(result):
    return list(zip(*(rows.tolist() for rows in result.pairs), strict=True))


QUERIES = {
    "band": Query(band=[("x", "x", -1, 2)], time="t", rows=15),
    "equality": Query(
        on="name",
        band=[("x", "x", None, 1)],
        time="t",
        within=4,
    ),
    "last row": Query(time="t", rows=1),
    "same time": Query(on="x", time="t", within=0),
    "none": Query(band=[("x", "x", 100, None)], time="t", rows=9),
}


@pytest.mark.few(6)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_answers_as_a_loop_over_rows_does(bundles, shape, query):
    rng = np.random.default_rng([len(shape), len(query)])
    with open_device(f"software:{bundles[shape]}") as device:
        for left_rows, right_rows in [(300, 200), (0, 50), (50, 0), (0, 0), (2, 400), (400, 2)]:
            span = max(left_rows, right_rows)
            left = random_table(rng, left_rows, span)
            right = random_table(rng, right_rows, span)
            result = join_tables(left, right, QUERIES[query], device)
            expected = naive_join(left, right, QUERIES[query])
            assert rows_of(result) == expected
            assert result.table["row"].to_pylist() == [left for left, _ in expected]
            assert result.table["row_right"].to_pylist() == [right for _, right in expected]


@settings(max_examples=30)
@given(st.data())
def test_order_batches_and_buffers_do_not_depend_on_their_sizes(bundles, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    left = random_table(rng, data.draw(st.integers(0, 60)), 40)
    right = random_table(rng, data.draw(st.integers(0, 60)), 40)
    shape = data.draw(st.sampled_from(list(SHAPES)))
    query = QUERIES[data.draw(st.sampled_from(list(QUERIES)))]
    sizes = {name: data.draw(st.integers(1, 50)) for name in ("batch_rows", "buffer_rows")}
    with open_device(f"software:{bundles[shape]}") as device:
        join = Join(left, right, query, device, record=True, **sizes)
        # Cut short first: neither the graph nor the device may remember it.
        reader = join.batches()
        next(reader, None)
        reader.close()
        batches = list(join.batches())
    assert all(0 < batch.num_rows <= sizes["batch_rows"] for batch in batches)
    assert list(zip(*(rows.tolist() for rows in join.measured.pairs), strict=True)) == naive_join(
        left, right, query
    )


def test_a_join_with_pandas_of_its_own_making_agrees():
    rng = np.random.default_rng(5)
    left, right = random_table(rng, 3000, 10**5), random_table(rng, 3000, 10**5)
    query = Query(on="name", time="t", within=500)
    with open_device("software:") as device:
        result = join_tables(left, right, query, device)
    both = (
        left.to_pandas()
        .dropna(subset="name")
        .merge(right.to_pandas().dropna(subset="name"), on="name", suffixes=("", "_right"))
    )
    both = both[(both.t - both.t_right).abs() <= 500]
    expected = sorted(zip(both.row, both.row_right, strict=True))
    assert sorted(rows_of(result)) == expected


@pytest.mark.parametrize("ordering", [Ordering.none(), Ordering.relaxed(3), Ordering.relaxed(50)])
def test_other_orderings_have_the_same_results(bundles, ordering):
    rng = np.random.default_rng(9)
    left, right = random_table(rng, 200), random_table(rng, 200)
    query = QUERIES["band"]
    relaxed = Query(band=query.terms, time=query.time, **over(query.window), ordering=ordering)
    for shape in SHAPES:
        with open_device(f"software:{bundles[shape]}") as device:
            result = join_tables(left, right, relaxed, device)
        assert sorted(rows_of(result)) == sorted(naive_join(left, right, query))


def test_strict_order_is_by_the_later_row_then_by_the_earlier_one(bundles):
    left = pa.table({"t": [1, 1, 2], "l": [0, 1, 2]})
    right = pa.table({"t": [1, 2, 2], "r": [0, 1, 2]})
    query = Query(time="t", rows=9)
    with open_device(f"software:{bundles['groups']}") as device:
        result = join_tables(left, right, query, device)
    # Arrivals: l0 l1 r0 l2 r1 r2.
    assert rows_of(result) == [
        (0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (2, 2)
    ]  # fmt: skip


def test_null_keys_match_nothing_but_count_as_rows():
    left = pa.table({"t": [1, 2, 3], "x": [1, None, None]})
    right = pa.table({"t": [4], "x": [1]})
    for rows, results in [(2, 0), (3, 1)]:
        query = Query(on="x", time="t", rows=rows)
        with open_device("software:") as device:
            assert join_tables(left, right, query, device).table.num_rows == results


def test_temporal_columns_and_durations():
    start = datetime(2024, 1, 1)
    left = pa.table({"at": pa.array([start], pa.timestamp("s"))})
    right = pa.table(
        {"at": pa.array([start + timedelta(minutes=m) for m in (29, 30, 31)], pa.timestamp("us"))}
    )
    query = Query(
        band=[("at", "at", parse_duration("-1d"), parse_duration("-30min"))],
        time="at",
        within="30min",
    )
    with open_device("software:") as device:
        assert rows_of(join_tables(left, right, query, device)) == [(0, 1)]


def test_all_key_types_pass_through_unharmed():
    columns = {
        "t": pa.array([1, 2]),
        "text": pa.chunked_array([pa.array(["a"]), pa.array(["b"])]),
        "codes": pa.array(["x", None]).dictionary_encode(),
        "list": pa.array([[1], None]),
        "date": pa.array([1, 2], pa.int32()).cast(pa.date32()),
        "real": pa.array([0.5, None]),
    }
    table = pa.table(columns)
    query = Query(on="t", time="t", rows=2, suffix="_2")
    with open_device("software:") as device:
        result = join_tables(table, table, query, device)
    assert result.table.schema == output_schema(table.schema, table.schema, "_2")
    assert result.table.select(table.column_names).to_pydict() == table.to_pydict()


def test_the_input_may_come_in_batches():
    table = pa.table({"t": [1, 2, 3]})
    query = Query(time="t", rows=1, sorted=True)
    with open_device("software:") as device:
        batches = table.to_batches(max_chunksize=1)
        reader = pa.RecordBatchReader.from_batches(table.schema, batches)
        rows = [batch.num_rows for batch in Join(iter(batches), reader, query, device).batches()]
    assert sum(rows) == 5


def test_a_name_that_clashes_even_with_the_suffix_is_an_error():
    schema = pa.schema([("a", pa.int64()), ("a_right", pa.int64())])
    with pytest.raises(UsageError, match="'a_right' in the answer, which is taken"):
        output_schema(schema, schema)
    assert output_schema(schema, schema, "_2").names == ["a", "a_right", "a_2", "a_right_2"]


def test_a_window_of_more_rows_than_the_device_holds_is_an_error(bundles):
    table = pa.table({"t": [1]})
    query = Query(time="t", rows=61)
    with open_device(f"software:{bundles['groups']}") as device:
        with pytest.raises(CapacityError, match=r"61 tuples.*60 tuples.*python -m sim build"):
            Join(table, table, query, device)


def test_a_time_window_that_outgrows_the_device_names_side_capacity_and_row(bundles):
    left = pa.table({"t": [0]})
    right = pa.table({"t": np.r_[np.arange(100, 170)[::-1], 0]})
    query = Query(time="t", within=64)
    with open_device(f"software:{bundles['groups']}") as device:
        with pytest.raises(CapacityError, match=r"S \(right\).*60 tuples") as caught:
            Join(left, right, query, device)
    # Rows 69 … 0 come in this order; the sixty-first is row 9.
    assert caught.value.ordinal == 9
    assert caught.value.needed == 65
    exact = Query(time="t", within=59)
    with open_device(f"software:{bundles['groups']}") as device:
        assert rows_of(join_tables(left, right, exact, device)) == naive_join(left, right, exact)


@given(st.lists(st.integers(0, 40), max_size=40), st.integers(0, 50), st.integers(1, 10))
def test_the_largest_window_is_what_a_loop_finds(values, lifespan, capacity):
    times = np.array(sorted(values), np.uint64)
    held = [sum(1 for u in times[:i] if int(t) - int(u) <= lifespan) for i, t in enumerate(times)]
    full = [i for i, count in enumerate(held) if count >= capacity]
    needed, first = largest_window(times, lifespan, capacity)
    assert needed == max(held, default=-1) + 1
    assert first == (full[0] if full else None)


class Frozen(Device):
    """Accepts nothing, like hardware whose clock stands still."""

    def __init__(self, inner, accepts=0):
        self.inner, self.accepts = inner, accepts
        self.uri, self.manifest = "frozen:", inner.manifest

    def exchange(self, words, results, *, cycles, stamps=None):
        if self.accepts:
            done = self.inner.exchange(words[: self.accepts], results, cycles=cycles, stamps=stamps)
            self.accepts = max(0, self.accepts - done.accepted)
            return done
        return Exchange(0, 0, cycles)

    def counters(self):
        return {"cycles": 77}

    def close(self):
        pass


@pytest.mark.parametrize("deadline", [Deadline(cycles=10**5), Deadline(seconds=0.0)])
def test_a_device_that_stands_still_is_an_error_with_its_counters(bundles, deadline):
    table = pa.table({"t": np.arange(50)})
    query = Query(time="t", rows=3)
    with open_device(f"software:{bundles['groups']}") as inner:
        join = Join(table, table, query, Frozen(inner), deadline=deadline)
        with pytest.raises(DeviceTimeoutError, match="cycles 77") as caught:
            list(join.batches())
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("accepted", [1, 5, 8, 9, 30])
def test_a_device_can_be_used_again_after_an_execution_was_cut(bundles, accepted):
    rng = np.random.default_rng(1)
    left, right = random_table(rng, 100), random_table(rng, 100)
    query = QUERIES["band"]
    with open_device(f"software:{bundles['groups']}") as inner:
        device = Frozen(inner, accepted)
        with pytest.raises(DeviceTimeoutError):
            Join(left, right, query, device, deadline=Deadline(cycles=1)).run()
        device.accepts = 10**9
        assert rows_of(join_tables(left, right, query, device)) == naive_join(left, right, query)


def test_counters_are_those_of_this_run_and_progress_is_reported(bundles):
    rng = np.random.default_rng(2)
    left, right = random_table(rng, 100), random_table(rng, 90)
    seen = []
    with open_device(f"software:{bundles['groups']}") as device:
        for _ in range(2):
            result = join_tables(left, right, QUERIES["band"], device, report=seen.append)
        grown = {name: value for name, value in result.counters.items() if value}
    assert seen[-1].pairs == result.table.num_rows
    assert seen[-1].tuples == 190
    assert grown == {} or max(grown.values()) < 190 * 200


def test_a_trace_has_a_latency_for_every_row_and_every_result(bundles):
    rng = np.random.default_rng(3)
    left, right = random_table(rng, 100), random_table(rng, 90)
    with open_device(f"software:{bundles['groups']}") as device:
        latency = join_tables(left, right, QUERIES["band"], device, trace=True).latency
        assert join_tables(left, right, QUERIES["band"], device).latency is None
    assert latency is not None
    assert len(latency.processing) == 190
    assert (
        len(latency.visiting)
        == len(latency.emitted)
        == len(naive_join(left, right, QUERIES["band"]))
    )


def test_verification_agrees_and_notices_a_difference():
    rng = np.random.default_rng(4)
    left, right = random_table(rng, 120), random_table(rng, 130)
    for query in QUERIES.values():
        expected = reference_pairs(left, right, query)
        pairs = list(zip(*(rows.tolist() for rows in expected), strict=True))
        assert pairs == naive_join(left, right, query)
        assert compare_pairs(expected, expected, ordered=True).agrees
    expected = reference_pairs(left, right, QUERIES["band"])
    backwards = (expected[0][::-1], expected[1][::-1])
    assert compare_pairs(backwards, expected, ordered=False).agrees
    assert not compare_pairs(backwards, expected, ordered=True).agrees
    short = compare_pairs((expected[0][:-1], expected[1][:-1]), expected, ordered=True)
    assert "nothing, not left row" in short.text


def test_the_oracle_of_these_tests_agrees_with_pandas_on_as_of_joins():
    rng = np.random.default_rng(6)
    left, right = random_table(rng, 80, 500, 0), random_table(rng, 80, 500, 0)
    query = Query(time="t", rows=1)
    pairs = naive_join(left, right, query)
    frame = pd.merge_asof(
        right.to_pandas().sort_values("t", kind="stable"),
        left.to_pandas().sort_values("t", kind="stable"),
        on="t", suffixes=("", "_left"),
    ).dropna(subset="row_left")  # fmt: skip
    of_right = {(int(row.row_left), int(row.row)) for row in frame.itertuples()}
    assert of_right <= set(pairs)


class Overflowing(Frozen):
    """Sets the overflow flag of S's window in all that it answers."""

    def exchange(self, words, results, *, cycles, stamps=None):
        done = self.inner.exchange(words, results, cycles=cycles, stamps=stamps)
        place = self.manifest.result_word["overflow"]
        results[: done.produced, 0] |= np.uint64(2 << place.offset)
        return done


def test_a_fault_that_the_device_reports_is_never_passed_over(bundles):
    table = pa.table({"t": np.arange(50)})
    query = Query(time="t", within=3)
    with open_device(f"software:{bundles['groups']}") as inner:
        with pytest.raises(CapacityError, match="side S outgrew"):
            join_tables(table, table, query, Overflowing(inner), trace=True)


class Disturbed(Frozen):
    """Gets an input word that nobody sent after each mark, as over a faulty link."""

    def exchange(self, words, results, *, cycles, stamps=None):
        done = self.inner.exchange(words, results, cycles=cycles, stamps=stamps)
        if WordCodec(self.manifest).marks(results[: done.produced]).any():
            word = illegal_word(self.manifest, np.random.default_rng(1))
            more = self.inner.exchange(word, np.zeros_like(results[:1]), cycles=cycles)
            assert (more.accepted, more.produced) == (1, 0)
        return done


def test_an_illegal_word_is_an_error_that_the_next_join_knows_nothing_of(bundles):
    table = pa.table({"t": np.arange(50)})
    query = Query(time="t", within=3)
    with open_device(f"software:{bundles['groups']}") as inner:
        with pytest.raises(DeviceError, match="'frozen:' got an input word.*again") as caught:
            join_tables(table, table, query, Disturbed(inner))
        assert caught.value.exit_code == 1
        assert inner.counters()["illegal"] > 0
        assert rows_of(join_tables(table, table, query, inner)) == naive_join(table, table, query)
