# SPDX-License-Identifier: Apache-2.0
"""Joins of streams: cut into any batches they answer as a loop over the rows does."""

from datetime import datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host import CountWindow, Ordering, TimeWindow, UsageError, open_device
from host.errors import AcceleratorLimitError, CapacityError, OrderError
from host.query.quantities import parse_duration
from host.query.queries import Query, Term
from host.reference.types import JoinType
from host.runtime import ExecStreamGraph, GraphError, Scheduler
from host.runtime.source import ArrowSource, ArrowSourceParams
from host.session.intake import TaggedLayout
from host.session.join import Join, JoinStream, add_join
from host.session.params import JoinOptions, plan_join
from tests.host.tables import bundle, naive_join
from tests.windows import over

SHAPES = {
    "one core": {"cores": 1, "sub_window": 64, "probes": 1},
    "groups": {"cores": 3, "sub_window": 20, "probes": 8, "lanes": 2},
    "seven": {"cores": 7, "sub_window": 9, "probes": 4, "fan_in": 2, "probe_bits": 2},
    "two in a word": {
        "engine": "index",
        "cores": 2,
        "sub_window": 32,
        "probes": 4,
        "tuples_per_word": 2,
    },
}
TYPES = [pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()]
WORDS = ["", "a", "b", "Zürich", "zürich"]


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """A bundle of each shape, for the software device, with two narrow fields."""
    folder = tmp_path_factory.mktemp("bundles")
    return {
        name: bundle(
            folder / name.replace(" ", "_"), keys=("x16", "u8"), timestamp_bits=20, **shape
        )
        for name, shape in SHAPES.items()
    }


def cut(draw, table):
    """The rows of ``table`` in batches of any sizes, empty ones among them."""
    ends = sorted(draw(st.lists(st.integers(0, table.num_rows), max_size=6)))
    bounds = [0, *ends, table.num_rows]
    whole = table.combine_chunks()
    batches = []
    for begin, end in pairwise(bounds):
        part = whole.slice(begin, end - begin).to_batches()
        batches += part or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    return batches


def reader(table, batches):
    return pa.RecordBatchReader.from_batches(table.schema, batches)


@st.composite
def tables(draw):
    """Two tables sorted by ``t``, whose columns have types of their own."""
    result = []
    base = draw(st.sampled_from([0, 0, 1 << 62]))
    for _ in range(2):
        count = draw(st.integers(0, 40))
        steps = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
        dtype = draw(st.sampled_from(TYPES))
        wide = draw(st.sampled_from([pa.int64(), pa.uint64()]))
        narrow = st.none() | st.integers(0, 12)
        far = st.none() | st.integers(base, base + 5) | st.sampled_from([0, (1 << 63) - 1, 1 << 40])
        columns = {
            "t": pa.array(np.cumsum([base, *steps], dtype=np.int64)[1:], pa.int64()),
            "x": pa.array(draw(st.lists(narrow, min_size=count, max_size=count)), dtype),
            "far": pa.array(draw(st.lists(far, min_size=count, max_size=count)), wide),
            "flag": pa.array(
                draw(st.lists(st.none() | st.booleans(), min_size=count, max_size=count)),
                pa.bool_(),
            ),
            "word": pa.array(
                draw(st.lists(st.sampled_from([None, *WORDS]), min_size=count, max_size=count)),
                pa.string(),
            ),
            "row": pa.array(range(count), pa.int64()),
        }
        if draw(st.booleans()):
            columns["word"] = columns["word"].dictionary_encode()
        result.append(pa.table(columns))
    return result


QUERIES = {
    "band": ([Term("x", "x", -1, 2)], CountWindow(15)),
    "timed": ([Term("word", "word"), Term("x", "x", None, 1)], TimeWindow(4)),
    "equal": ([Term("far", "far")], CountWindow(9)),
    "several": ([Term("x", "x", -3, 3), Term("word", "word"), Term("flag", "flag")], TimeWindow(9)),
    "three": ([Term("word", "word"), Term("x", "x"), Term("far", "far")], CountWindow(20)),
    "all": ([], TimeWindow(2)),
    "flags": ([Term("flag", "flag", -1, 0)], CountWindow(5)),
}


def query_of(name, **options):
    terms, window = QUERIES[name]
    return Query(band=terms, time="t", **over(window), sorted=True, **options)


def rows_of(join):
    return list(zip(*(rows.tolist() for rows in join.measured.pairs), strict=True))


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_streams_cut_anyhow_answer_as_a_loop_over_rows_does(bundles, data):
    left, right = data.draw(tables())
    query = query_of(data.draw(st.sampled_from(list(QUERIES))))
    sizes = {name: data.draw(st.integers(1, 50)) for name in ("batch_rows", "buffer_rows")}
    readers = [reader(table, cut(data.draw, table)) for table in (left, right)]
    with open_device(f"software:{bundles[data.draw(st.sampled_from(list(SHAPES)))]}") as device:
        join = Join(*readers, query, device, record=True, **sizes)
        result = pa.Table.from_batches(list(join.batches()), schema=join.schema)
    expected = naive_join(left, right, query)
    assert rows_of(join) == expected
    assert result["row"].to_pylist() == [row for row, _ in expected]
    assert result["row_right"].to_pylist() == [row for _, row in expected]
    for name in left.column_names:
        column = left[name].to_pylist()
        assert result[name].to_pylist() == [column[row] for row, _ in expected]
    assert join.measured.staged.rows == left.num_rows + right.num_rows


def tagged(left, right):
    """Both tables in one, in order of arrival, as Spark hands them over."""
    rows = sorted(
        [(time, 0, row) for row, time in enumerate(left["t"].to_pylist())]
        + [(time, 1, row) for row, time in enumerate(right["t"].to_pylist())]
    )
    columns = {
        "side": pa.array([side for _, side, _ in rows], pa.int8()),
        "order": pa.array([time for time, _, _ in rows], pa.int64()),
        "row": pa.array([row for _, _, row in rows], pa.int64()),
    }
    for side, letter, table in ((0, "l", left), (1, "r", right)):
        at = pa.array([row if own == side else None for _, own, row in rows], pa.int64())
        for index, column in enumerate(table.combine_chunks().columns):
            columns[f"{letter}{index}"] = column.take(at)
    return pa.table(columns), TaggedLayout(left.schema, right.schema, 3)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_tagged_rows_answer_as_two_streams_do(bundles, data):
    left, right = data.draw(tables())
    query = query_of(data.draw(st.sampled_from(list(QUERIES))))
    both, layout = tagged(left, right)
    with open_device(f"software:{bundles[data.draw(st.sampled_from(list(SHAPES)))]}") as device:
        join = Join.of_tagged(
            reader(both, cut(data.draw, both)), layout, query, device,
            buffer_rows=data.draw(st.integers(1, 50)),
        )  # fmt: skip
        result = pa.Table.from_batches(list(join.batches()), schema=join.schema)
    expected = naive_join(left, right, query)
    pairs = zip(result["row"].to_pylist(), result["row_right"].to_pylist(), strict=True)
    assert list(pairs) == expected


class Again:
    """Batches that can be iterated several times."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_an_execution_can_be_cut_anywhere_and_begun_again(bundles, data):
    left, right = data.draw(tables())
    query = query_of(data.draw(st.sampled_from(list(QUERIES))))
    inputs = [Again(cut(data.draw, table)) for table in (left, right)]
    with open_device(f"software:{bundles['groups']}") as device:
        join = Join(*inputs, query, device, record=True, batch_rows=3, buffer_rows=4)
        for steps in data.draw(st.lists(st.integers(0, 9), max_size=3)):
            some = join.batches()
            for _ in range(steps):
                next(some, None)
            some.close()
        list(join.batches())
    assert rows_of(join) == naive_join(left, right, query)


@pytest.mark.parametrize("ordering", [Ordering.none(), Ordering.relaxed(3), Ordering.relaxed(50)])
def test_other_orderings_of_streams_have_the_same_results(bundles, ordering):
    rng = np.random.default_rng(3)
    left, right = (long_table(rng, 400) for _ in range(2))
    query = query_of("band", ordering=ordering)
    for folder in bundles.values():
        with open_device(f"software:{folder}") as device:
            join = Join(
                reader(left, left.to_batches(max_chunksize=7)), right, query, device, record=True
            )
            list(join.batches())
        assert sorted(rows_of(join)) == sorted(naive_join(left, right, query_of("band")))


def long_table(rng, rows, spread=2):
    return pa.table(
        {
            "t": np.cumsum(rng.integers(0, spread, rows)),
            "x": rng.integers(0, 6, rows),
            "row": np.arange(rows),
        }
    )


def test_times_of_two_units_and_dates_meet():
    start = datetime(2024, 1, 1)
    minutes = [0, 29, 30, 31, 90]
    left = pa.table(
        {"at": pa.array([start + timedelta(minutes=m) for m in minutes], pa.timestamp("s"))}
    )
    right = pa.table(
        {"at": pa.array([start + timedelta(minutes=m) for m in minutes], pa.timestamp("us"))}
    )
    query = Query(
        band=[("at", "at", parse_duration("-30min"), parse_duration("0s"))],
        time="at", within="30min", sorted=True,
    )  # fmt: skip
    with open_device("software:") as device:
        join = Join(
            reader(left, left.to_batches(max_chunksize=2)),
            reader(right, right.to_batches(max_chunksize=1)),
            query, device, record=True,
        )  # fmt: skip
        list(join.batches())
    assert rows_of(join) == naive_join(left, right, query)


def test_a_reader_can_be_joined_once_and_a_table_again():
    table = pa.table({"t": [1, 2, 3]})
    query = Query(time="t", rows=1, sorted=True)
    with open_device("software:") as device:
        join = Join(reader(table, table.to_batches()), table, query, device)
        assert sum(batch.num_rows for batch in join.batches()) == 5
        with pytest.raises(UsageError, match="can be joined once, and it has been"):
            list(join.batches())
        with pytest.raises(UsageError, match="without any batch has no schema"):
            Join(iter([]), table, query, device)
        unsorted = Query(time="t", rows=1)
        gathered = Join(reader(table, table.to_batches()), table, unsorted, device)
        for _ in range(2):
            assert sum(batch.num_rows for batch in gathered.batches()) == 5


def fail(bundles, left, right, query, kind, match, rows=2, **options):
    with open_device(f"software:{bundles['groups']}") as device:
        batches = reader(left, left.to_batches(max_chunksize=rows))
        with pytest.raises(kind, match=match) as caught:
            list(Join(batches, right, query, device, **options).batches())
    return caught.value


def test_what_is_wrong_with_a_row_is_named_with_its_number_in_the_whole_stream(bundles):
    def table(times, **columns):
        return pa.table({"t": pa.array(times, pa.int64()), **columns})

    good = table(range(9))
    query = Query(time="t", within=3, sorted=True)
    match = "'left.t' is null in row 5"
    fail(bundles, table([0, 1, 2, 3, 4, None]), good, query, OrderError, match)
    match = "'left.t': row 4 .* has 1 after 2"
    fail(bundles, table([0, 1, 2, 2, 1]), good, query, OrderError, match)
    match = "'left.t': row 3 .* has 1 after 2"
    fail(bundles, table([0, 1, 2, 1]), good, query, OrderError, match, rows=4)
    far = table([0, 1, 2, 3, 5, 1 << 20])
    error = fail(
        bundles, far, good, query, AcceleratorLimitError, "'left.t' holds 1048576 in row 5"
    )
    assert "--timestamp-bits 21" in str(error)
    assert error.row == 5
    crowd = table([0, *[7] * 61])
    error = fail(bundles, crowd, good, query, CapacityError, r"R \(left\).*60 tuples")
    assert error.ordinal == 61
    wide = Query(time="t", rows=61, sorted=True)
    fail(bundles, good, good, wide, CapacityError, "61 tuples")


def test_a_value_beyond_a_given_range_is_named_and_nothing_wrong_is_emitted(bundles):
    left = pa.table({"t": range(6), "x": [1 << 40, (1 << 40) + 1, None, 1 << 40, 0, 1]})
    right = pa.table({"t": range(6), "x": [1 << 40] * 6})
    query = Query(band=[("x", "x", -1, 1)], time="t", rows=9, sorted=True)
    ranges = ({"x": (1 << 40, (1 << 40) + 9)}, {"x": (1 << 40, (1 << 40) + 9)})
    match = "'left.x' holds 0 in row 4"
    error = fail(bundles, left, right, query, AcceleratorLimitError, match, ranges=ranges)
    assert error.row == 4
    assert "true range" in error.remedy
    # Divided by the step that is given it fits, unless a value is between two steps.
    steps = ({"x": (0, 1 << 40, 1 << 30)}, {"x": (0, 1 << 40, 1 << 30)})
    match = "'left.x' holds 1099511627777 in row 1.*the true step"
    fail(bundles, left, right, query, AcceleratorLimitError, match, ranges=steps)


@pytest.mark.parametrize("how", list(JoinType))
@pytest.mark.parametrize(
    "value",
    [lambda i: f"k{i}", lambda i: i << 40, lambda i: i / 7, lambda i: i % 7],
    ids=["texts", "far apart", "fractions", "few"],
)
def test_more_distinct_values_of_a_stream_than_a_field_has_codes_are_told_apart(
    bundles, value, how
):
    count = 1100  # a field of 8 bits has 256 codes, or 128 beside near values
    times = [i // 600 for i in range(count)]
    left = pa.table({"t": times, "k": [value(i) for i in range(count)], "x": [0] * count})
    right = pa.table({"t": times, "k": [value(i + 256) for i in range(count)], "x": [0] * count})
    terms = [Term("x", "x", -1, 1), Term("k", "k")]
    query = Query(band=terms, time="t", rows=9, sorted=True, how=how)
    with (
        open_device(f"software:{bundles['groups']}") as device,
        open_device("software:") as wide,
    ):
        answers = []
        for of in (device, wide):
            batches = reader(left, left.to_batches(max_chunksize=70))
            join = Join(batches, right, query, of, record=True)
            list(join.batches())
            answers.append(rows_of(join))
        assert answers[0] == answers[1]


def test_ranges_and_steps_let_wide_columns_into_narrow_fields(bundles):
    start = 1_700_000_000_000_000_000
    times = [start + 10**9 * second for second in range(50)]
    left = pa.table({"t": times, "x": [10**12 + 10**9 * (i % 7) for i in range(50)]})
    query = Query(
        band=[("x", "x", -(10**9), 10**9)], time="t", within=5 * 10**9,
        sorted=True,
    )  # fmt: skip
    known = {"t": (start, start + 10**15, 10**9), "x": (10**12, 10**12 + 10**10, 10**9)}
    with open_device(f"software:{bundles['groups']}") as device:
        join = Join(
            reader(left, left.to_batches(max_chunksize=9)), left, query, device,
            ranges=(known, known), record=True,
        )  # fmt: skip
        list(join.batches())
    assert rows_of(join) == naive_join(left, left, query)


def endless(rng, rows, batch, spread=3, values=6):
    """Batches of a long sorted stream, made as they are asked for."""
    time = 0
    for begin in range(0, rows, batch):
        steps = rng.integers(0, spread, batch)
        times = time + np.cumsum(steps)
        time = int(times[-1])
        yield pa.record_batch(
            {
                "t": times,
                "x": rng.integers(0, values, batch),
                "row": np.arange(begin, begin + batch),
            }
        )


@pytest.mark.parametrize("window", [CountWindow(50), TimeWindow(20)])
@pytest.mark.parametrize(("shift", "ordering"), [
    (0, Ordering.outer()), (1000, Ordering.outer()), (0, Ordering.none()), (0, Ordering.relaxed(9)),
])  # fmt: skip
def test_rows_are_forgotten_however_long_the_stream_is(bundles, window, shift, ordering):
    rows, batch = 40_000, 100
    query = Query(
        band=[("x", "x", shift, shift)], time="t", **over(window), sorted=True,
        ordering=ordering,
    )  # fmt: skip
    kept, results = [], 0
    with open_device(f"software:{bundles['groups']}") as device:
        inputs = [endless(np.random.default_rng(seed), rows, batch) for seed in (1, 2)]
        schema = next(endless(np.random.default_rng(0), 100, 100)).schema
        graph = ExecStreamGraph(1000)
        producers = []
        for stream in inputs:
            source = ArrowSource()
            graph.add(source, ArrowSourceParams(supply=lambda stream=stream: stream))
            producers.append(source)
        options = JoinOptions(report=lambda progress: kept.append(stores_of(join)))
        params = plan_join(schema, schema, query, device, options=options)
        join = add_join(graph, producers, params)
        graph.prepare()
        for result in Scheduler(graph).read():
            results += result.num_rows
    assert (results > 0) == (shift == 0)
    # Window, buffers, the batch that is staged, and what is put together to one batch.
    assert len(kept) > 3
    assert max(kept) < 30_000
    assert join.measured.staged.rows == 2 * rows


def stores_of(join):
    return max(rows.kept for rows in join.stores)


def test_one_copy_is_made_of_every_batch_that_is_staged(bundles):
    rng = np.random.default_rng(8)
    rows = 20_000
    left, right = (
        pa.table(
            {
                "t": np.sort(rng.integers(0, 10**6, rows)),
                "x": rng.integers(0, 100, rows, dtype=np.int8),
                "name": rng.choice(["a", "b"], rows),
            }
        )
        for _ in range(2)
    )
    query = Query(on="x", time="t", rows=4, sorted=True)
    named = Query(
        on=["x", "name"], time="t", rows=4,
        sorted=True,
    )  # fmt: skip
    with open_device(f"software:{bundles['groups']}") as device:
        word = 8 * device.manifest.input_word.columns
        join = Join(reader(left, left.to_batches(max_chunksize=999)), right, query, device)
        list(join.batches())
        assert join.measured.staged.batches == 21 + 1
        assert join.measured.staged.rows == join.measured.staged.tuples == 2 * rows
        assert join.measured.staged.staged_bytes == 2 * rows * word
        assert join.measured.staged.copied_batches == join.measured.staged.copied_bytes == 0
        assert join.measured.staged.moved_words < rows / 2
        texts = Join(reader(left, left.to_batches(max_chunksize=999)), right, named, device)
        list(texts.batches())
        assert texts.measured.staged.copied_batches == 22
        assert texts.measured.staged.copied_bytes == 2 * rows * 8


EDGES = [-(1 << 63), -(1 << 63) + 1, -1, 0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_columns_of_64_bits_match_as_whole_numbers_do(data):
    sides = []
    for _ in range(2):
        dtype = data.draw(st.sampled_from([pa.int64(), pa.uint64()]))
        low, high = (0, (1 << 64) - 1) if dtype == pa.uint64() else (-(1 << 63), (1 << 63) - 1)
        values = data.draw(
            st.lists(
                st.none() | st.sampled_from([v for v in EDGES if low <= v <= high]), max_size=8
            )
        )
        sides.append(pa.table({"t": np.arange(len(values)), "x": pa.array(values, dtype)}))
    left, right = sides
    distance = data.draw(st.integers(-2, 2))
    terms = [Term("x", "x", distance, distance + data.draw(st.integers(0, 3)))]
    query = Query(band=terms, time="t", rows=99, sorted=True)
    readers = [reader(table, table.to_batches(max_chunksize=2)) for table in sides]
    with open_device("software:") as device:
        join = Join(*readers, query, device, record=True)
        list(join.batches())
    assert rows_of(join) == naive_join(left, right, query)


def test_order_columns_of_64_bits_are_exact(bundles):
    times = [-(1 << 63), -(1 << 63) + 1, -(1 << 63) + 9]
    left = pa.table({"t": pa.array(times, pa.int64())})
    late = pa.table({"t": pa.array([(1 << 64) - 9, (1 << 64) - 1], pa.uint64())})
    query = Query(time="t", within=8, sorted=True)
    with open_device(f"software:{bundles['groups']}") as device:
        for table in (left, late):
            join = Join(reader(table, table.to_batches()), table, query, device, record=True)
            list(join.batches())
            assert rows_of(join) == naive_join(table, table, query)
    counted = Query(time="t", rows=2, sorted=True)
    fail(bundles, left, late, counted, AcceleratorLimitError, "too far apart")


def test_a_graph_of_ones_own_can_have_a_join_of_tagged_rows(bundles):
    left = pa.table({"t": [1, 2], "x": [1, 1]})
    right = pa.table({"t": [1, 3], "x": [1, 2]})
    both, layout = tagged(left, right)
    query = Query(band=[("x", "x", -1, 0)], time="t", within=2)
    with open_device(f"software:{bundles['seven']}") as device:
        graph = ExecStreamGraph(3)
        source = ArrowSource()
        graph.add(source, ArrowSourceParams(supply=lambda: both.to_batches(max_chunksize=1)))
        options = JoinOptions(record=True, batch_rows=1)
        params = plan_join(layout.left, layout.right, query, device, layout=layout, options=options)
        join = add_join(graph, [source], params)
        graph.prepare()
        assert graph.outlet is join
        for _ in range(2):
            table = pa.Table.from_batches(Scheduler(graph).run(), schema=params.schema)
            assert table.to_pydict() == {
                "t": [1, 2, 1, 2], "x": [1] * 4, "t_right": [1, 1, 3, 3], "x_right": [1, 1, 2, 2]
            }  # fmt: skip
            # Rows of a tagged stream are numbered over both sides.
            assert join.measured.pairs[0].tolist() == [0, 2, 0, 2]


def test_a_tagged_stream_needs_one_input_and_the_order_of_arrival(bundles):
    left, right = pa.table({"t": [5, 6]}), pa.table({"t": [1]})
    both, layout = tagged(left, right)
    backwards = both.take([1, 2, 0])
    query = Query(time="t", within=2)
    with open_device(f"software:{bundles['one core']}") as device:
        join = Join.of_tagged(iter(backwards.to_batches(max_chunksize=1)), layout, query, device)
        with pytest.raises(OrderError, match=r"'right\.t': row 0 .* has 1 after 6"):
            list(join.batches())
        graph = ExecStreamGraph()
        source = ArrowSource()
        graph.add(source, ArrowSourceParams(supply=both.to_batches))
        join = graph.add(JoinStream(), plan_join(layout.left, layout.right, query, device))
        graph.connect(source, join)
        with pytest.raises(GraphError, match=r"needs 2 input\(s\), not 1"):
            graph.prepare()


def test_every_batch_may_have_a_dictionary_of_its_own(bundles):
    words = [["b", "a"], ["c", None], ["a", "b"], ["d", "b"]]
    batches = [
        pa.record_batch(
            {"t": pa.array([2 * i, 2 * i + 1]), "word": pa.array(pair).dictionary_encode()}
        )
        for i, pair in enumerate(words)
    ]
    plain = pa.table({"t": range(8), "word": [word for pair in words for word in pair]})
    query = Query(on="word", time="t", rows=9, sorted=True)
    with open_device(f"software:{bundles['groups']}") as device:
        join = Join(iter(batches), iter(batches), query, device, record=True, batch_rows=3)
        result = pa.Table.from_batches(list(join.batches()), schema=join.schema)
    assert rows_of(join) == naive_join(plain, plain, query)
    assert result["word"].to_pylist() == result["word_right"].to_pylist()


def test_ranges_may_be_times_and_dates(bundles):
    start = datetime(2024, 1, 1)
    times = [start + timedelta(minutes=minute) for minute in (0, 5, 700)]
    table = pa.table({"t": np.arange(3), "at": pa.array(times, pa.timestamp("us"))})
    second = 1_000_000
    known = {"at": (start, start + timedelta(hours=18), second)}
    terms = [Term("at", "at", parse_duration("-5min"), parse_duration("5min"))]
    query = Query(band=terms, time="t", rows=9, sorted=True)
    with open_device(f"software:{bundles['groups']}") as device:
        join = Join(
            iter(table.to_batches()), table, query, device, ranges=(known, known), record=True
        )
        assert "in steps of 1000000" in join.plan.fields[0].meaning
        list(join.batches())
    assert rows_of(join) == naive_join(table, table, query)
