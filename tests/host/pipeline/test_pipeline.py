# SPDX-License-Identifier: Apache-2.0
from contextlib import closing
import tempfile
import threading

from hypothesis import example, given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from host.errors import FailureError, OrderError, UnsupportedTypeError, UsageError
from host.pipeline import Bound, Flag, Pipeline, Source
from host.pipeline.row_operators import CopyCounters
from host.runtime import Governor, Quantity

SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("n", pa.int64())])


def table_of(values):
    rows = [{"x": x, "y": y, "n": n} for n, (x, y) in enumerate(values)]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


# Each operation: what the pipeline does, what a list does.


def keep_if(least):
    return (
        lambda p: p.filter(lambda x: pc.greater_equal(x, least)),
        lambda rows: [row for row in rows if row["x"] >= least],
    )


def add(amount):
    return (
        lambda p: p.map("x", lambda x, y: pc.add(pc.add(x, y), amount)),
        lambda rows: [row | {"x": row["x"] + row["y"] + amount} for row in rows],
    )


def negate(name):
    return (
        lambda p: p.update(name, lambda values: np.negative(values, values)),
        lambda rows: [row | {name: -row[name]} for row in rows],
    )


def swap():
    return (
        lambda p: p.select("n", x="y", y="x"),
        lambda rows: [{"n": row["n"], "x": row["y"], "y": row["x"]} for row in rows],
    )


def drop_odd(batch):
    return batch.filter(pc.equal(pc.bit_wise_and(batch.column("n"), 1), 0))


def by_batches():
    return (
        lambda p: p.map_batches(drop_odd),
        lambda rows: [row for row in rows if row["n"] % 2 == 0],
    )


def twice():
    def each_twice(batch):
        for index in range(batch.num_rows):
            yield batch.slice(index, 1)
            yield batch.slice(index, 1)

    def apply(p):
        return p.flat_map(each_twice, p.execution().schema)

    return apply, lambda rows: [row for row in rows for _ in range(2)]


def sort(names):
    return (
        lambda p: p.sorted(*names),
        lambda rows: sorted(rows, key=lambda row: [row[name] for name in names]),
    )


def first_of(names):
    def unique(rows):
        seen = {}
        for row in rows:
            seen.setdefault(tuple(row[name] for name in names), row)
        return list(seen.values())

    return lambda p: p.distinct(*names), unique


def cut(rows, skip):
    return lambda p: p.limit(rows, skip), lambda values: values[skip : skip + rows]


NAMES = st.lists(st.sampled_from("xyn"), min_size=1, max_size=2, unique=True)
OPERATION = st.one_of(
    st.builds(keep_if, st.integers(-3, 3)),
    st.builds(add, st.integers(-3, 3)),
    st.builds(negate, st.sampled_from("xy")),
    st.builds(swap),
    st.builds(by_batches),
    st.builds(twice),
    st.builds(sort, NAMES),
    st.builds(first_of, NAMES),
    st.builds(cut, st.integers(0, 20), st.integers(0, 5)),
)
VALUES = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), max_size=30)


@st.composite
def settings_of(draw):
    rows, threads = draw(st.integers(1, 9)), draw(st.sampled_from([1, 1, 3]))
    fuse, buffers = draw(st.booleans()), draw(st.integers(1, 9))
    return lambda p: p.batch_rows(rows, buffers).fused(fuse).parallel(threads)


@settings(max_examples=80)
@given(VALUES, st.lists(OPERATION, max_size=5), settings_of(), st.data())
def test_any_pipeline_does_what_lists_do(values, operations, configure, data):
    table = table_of(values)
    before = table.to_pylist()
    pipeline = configure(Pipeline.of_table(table, split_rows=data.draw(st.integers(1, 12))))
    expected = before
    for apply, of_list in operations:
        pipeline, expected = apply(pipeline), of_list(expected)
    # Cut short at a random point first: nothing of it may show in the next execution.
    with closing(pipeline.batches()) as reader:
        for _ in range(data.draw(st.integers(0, 3))):
            next(reader, None)
    assert pipeline.collect().to_pylist() == expected
    assert pipeline.count() == len(expected)
    assert table.to_pylist() == before
    # What the flags say is true.
    traits = pipeline.execution().traits
    if traits.has(Flag.SIZED):
        assert traits.rows == len(expected)
    if traits.has(Flag.SORTED):
        keys = [[row[name] for name in traits.sorted_by] for row in expected]
        assert keys == sorted(keys)
    if traits.has(Flag.DISTINCT) and traits.distinct_by:
        keys = [tuple(row[name] for name in traits.distinct_by) for row in expected]
        assert len(set(keys)) == len(keys)
    assert pipeline.explain()


def numbers(rows, **options):
    return Pipeline.of_table(pa.table({"x": np.arange(rows), "k": np.arange(rows) % 7}), **options)


def reasons(pipeline, **options):
    return [step.reason for step in pipeline.execution(**options).steps]


def test_a_source_is_bound_when_the_terminal_operation_begins():
    table = [numbers(3).collect()]
    pipeline = Pipeline.of_table(lambda: table[0]).filter(lambda x: pc.less(x, 10))
    table[0] = numbers(5).collect()
    assert pipeline.count() == 5
    table[0] = numbers(6).collect()
    assert pipeline.count() == 6


def test_operations_are_lazy():
    def fail(*_):
        raise AssertionError("called")

    batches = Pipeline.of_batches(fail, SCHEMA)
    batches.filter(lambda x: pc.is_valid(x)).sorted("x").limit(3).explain()


def test_sorting_what_is_sorted_vanishes():
    declared = Pipeline.of_table(table_of([(1, 2)]), sorted_by=["x", "y"])
    assert reasons(declared.sorted("x"))[0].startswith("vanishes: its input is SORTED by x, y")
    assert reasons(declared.sorted("y")) == ["external sort"]
    assert reasons(declared.filter(lambda x: x).sorted("x"))[1].startswith("vanishes")
    assert reasons(declared.update("x", abs).sorted("x"))[1] == "external sort"
    assert reasons(declared.update("y", abs).sorted("x"))[1].startswith("vanishes")
    assert reasons(declared.select(z="x").sorted("z"))[1].startswith("vanishes")
    assert reasons(declared.sorted("n").sorted("n"))[1].startswith("vanishes")


def test_distinct_uses_what_is_known():
    source = table_of([(1, 1), (1, 1)])
    assert reasons(Pipeline.of_table(source, distinct_by=["n"]).distinct("n", "x"))[0].startswith(
        "vanishes"
    )
    assert reasons(Pipeline.of_table(source, sorted_by=["x"]).distinct("x"))[0].startswith(
        "compares neighbours"
    )
    assert "sorts back" in reasons(Pipeline.of_table(source).distinct("x"))[0]
    assert "no order to restore" in reasons(Pipeline.of_table(source).unordered().distinct("x"))[1]
    # Counting does not mind the order either.
    counting = Pipeline.of_table(source).distinct("x")
    assert "no order to restore" in reasons(counting, ordered=False)[0]
    assert counting.count() == 1


def test_a_sized_pipeline_is_counted_without_running_it():
    class Counted(Source):
        bound = 0

        def bind(self):
            self.bound += 1
            inner = numbers(10).source.bind()
            return Bound(inner.schema, inner.traits, [self.fail])

        def fail(self):
            raise AssertionError("read")

        def __str__(self):
            return "counted"

    source = Counted()
    assert Pipeline(source).map("y", lambda x: x).sorted("x").limit(4).count() == 4
    assert source.bound == 1


def test_limit_stops_the_source():
    taken = []

    def supply():
        for number in range(10**6):
            taken.append(number)
            yield pa.record_batch({"x": np.full(10, number)})

    schema = pa.schema([("x", pa.int64())])
    pipeline = Pipeline.of_batches(supply, schema).batch_rows(10, 20).limit(25)
    assert pipeline.collect().num_rows == 25
    assert len(taken) < 10


def test_fusing_makes_no_batch_in_between_and_copies_less():
    table = pa.table({name: np.arange(1 << 12) for name in "abcd"})
    counted = {}
    for fuse in (True, False):
        counters = CopyCounters()
        pipeline = (
            Pipeline.of_table(table)
            .batch_rows(1 << 10)
            .filter(lambda a: pc.equal(pc.bit_wise_and(a, 1), 0))
            .filter(lambda b: pc.equal(pc.bit_wise_and(b, 2), 0))
            .map("e", lambda c: pc.multiply(c, 2))
            .select("d", "e")
            .fused(fuse)
            .counting(counters)
        )
        pipeline.collect()
        counted[fuse] = counters
    assert counted[True].batches_out == 4
    assert counted[False].batches_out == 16
    # Once: b for its condition, c, d. Not fused, every filter copies all four.
    assert counted[True].columns == 3 * 4
    assert counted[False].columns == 2 * 4 * 4
    assert counted[True].bytes * 2 < counted[False].bytes


def test_sized_rows_are_allocated_once():
    arrays = numbers(1000).batch_rows(64).map("y", lambda x: pc.negate(x)).to_arrays()
    assert arrays["y"].tolist() == [-value for value in range(1000)]
    assert arrays["y"].base is None
    kept = numbers(1000).filter(lambda k: pc.equal(k, 0)).to_arrays()
    assert kept["x"].tolist() == list(range(0, 1000, 7))
    assert numbers(0).to_arrays()["x"].tolist() == []


def test_terminal_operations():
    pipeline = numbers(100).batch_rows(8).filter(lambda k: pc.less(k, 2))
    seen = []
    pipeline.for_each(lambda batch: seen.extend(batch.column("x").to_pylist()))
    assert seen == [value for value in range(100) if value % 7 < 2]
    assert pipeline.reduce(lambda total, batch: total + batch.num_rows, 0) == len(seen)


def test_rows_are_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out.parquet"
    assert numbers(10).sorted("k").write(path) == 10
    assert pq.read_table(path)["k"].to_pylist() == sorted(value % 7 for value in range(10))

    def fail(batch):
        raise OSError("broken")

    with pytest.raises(FailureError, match="broken"):
        numbers(10).peek(fail).write(tmp_path / "other.parquet")
    assert [each.name for each in tmp_path.iterdir()] == ["out.parquet"]


@pytest.mark.parametrize("threads", [1, 3])
def test_two_readers_get_the_same_rows_by_reference_and_the_file_has_all(tmp_path, threads):
    path = tmp_path / "even.parquet"
    pipeline = (
        numbers(3000)
        .batch_rows(64)
        .parallel(threads)
        .filter(lambda k: pc.less(k, 2))
        .tee(path)
        .update("x", lambda values: np.negative(values, values))
        .limit(5)
    )
    expected = numbers(3000).filter(lambda k: pc.less(k, 2)).collect()
    found = pipeline.collect()
    assert found["x"].to_pylist() == [-x for x in expected["x"].to_pylist()[:5]]
    assert pq.read_table(path).equals(expected)  # what one reader writes in place, no other sees
    graph = pipeline.parallel(1).execution().graph()
    shared = [line for line in graph.plan().splitlines() if " to all ->" in line]
    assert len(shared) == 2
    assert all("constant reference" in line for line in shared)


def test_a_second_reader_is_an_effect_so_that_rows_are_not_only_counted(tmp_path):
    path = tmp_path / "all.csv"
    assert numbers(300).tee(path).count() == 300
    assert len(path.read_text().splitlines()) == 301


def test_a_file_of_a_reader_that_stops_or_of_a_run_that_fails_does_not_appear(tmp_path):
    path = tmp_path / "some.json"
    with closing(numbers(3000).batch_rows(16).tee(path).batches()) as batches:
        next(batches)
    with pytest.raises(UsageError, match="row 3 "):
        Pipeline.of_table(pa.table({"x": [b"a", b"b", b"c", b"\xff"]})).tee(path).collect()
    failing = numbers(3000).batch_rows(16).tee(path)
    with pytest.raises(ZeroDivisionError):
        failing.map("x", lambda x: x if len(x) == 0 else 1 / 0).count()
    assert not list(tmp_path.iterdir())


def failing_at(bad):
    def checked(x):
        found = sorted(bad & set(x.to_pylist()))
        if found:
            raise ValueError(f"number {found[0]}")
        return x

    return checked


@settings(max_examples=25)
@given(st.sets(st.integers(0, 199), max_size=8), st.sampled_from([1, 3]), st.integers(1, 90))
@example({0, 1, 2}, 1, 3)
def test_a_row_that_raises_is_left_out_and_told(bad, threads, rows):
    errors = []
    pipeline = numbers(200).batch_rows(rows).parallel(threads).map("x", failing_at(bad))
    found = pipeline.resuming(errors).collect()["x"].to_pylist()
    assert found == [n for n in range(200) if n not in bad]
    assert sorted(map(str, errors)) == sorted(f"number {n}" for n in bad)
    if bad:
        with pytest.raises(ValueError, match="number"):
            pipeline.collect()


@pytest.mark.parametrize("sorted_by", [(), ("x",)])
@pytest.mark.parametrize("threads", [1, 3])
@given(values=st.lists(st.integers(0, 9), max_size=40))
@settings(max_examples=10)
def test_a_repeated_row_fails_or_is_left_out_and_told(values, threads, sorted_by):
    values = sorted(values) if sorted_by else values
    table = pa.table({"x": pa.array(values, pa.int64())})
    rows = Pipeline.of_table(table, sorted_by=sorted_by, split_rows=7).parallel(threads)
    once, errors = list(dict.fromkeys(values)), []
    found = rows.distinct("x", fail=True).resuming(errors).collect()["x"].to_pylist()
    assert found == rows.distinct("x").collect()["x"].to_pylist() == once
    assert len(errors) == len(values) - len(once)
    assert {type(error) for error in errors} <= {OrderError}
    if errors:
        with pytest.raises(OrderError, match="distinct by x"):
            rows.distinct("x", fail=True).collect()


def test_parquet_is_read_by_row_groups(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(numbers(1000).collect(), path, row_group_size=100)
    pipeline = Pipeline.of_parquet(path, columns=["x"], sorted_by=["x"])
    execution = pipeline.execution()
    assert len(execution.bound.splits) == 10
    assert str(execution.traits) == "SIZED(1000) ORDERED SORTED(x)"
    for threads in (1, 4):
        both = Pipeline.of_parquet([path, path]).parallel(threads)
        assert both.collect()["x"].to_pylist() == [*range(1000), *range(1000)]
    with pytest.raises(UsageError, match="cannot be read"):
        Pipeline.of_parquet(tmp_path / "none.parquet").count()
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(UsageError, match="not valid Parquet"):
        Pipeline.of_parquet(tmp_path / "bad.parquet").count()


def test_parallel_results_are_in_order_unless_nobody_minds():
    gate = threading.Event()

    def first_is_slow(x):
        if 0 in x.to_pylist():
            assert gate.wait(60)
        return pc.add(x, 0)

    pipeline = numbers(40, split_rows=10).parallel(4).map("x", first_is_slow, ["x"])
    with closing(pipeline.unordered().batches()) as reader:
        others = [next(reader)["x"].to_pylist() for _ in range(3)]
        gate.set()
        last = next(reader)["x"].to_pylist()
    assert last == list(range(10))
    assert sorted(others) == [list(range(start, start + 10)) for start in (10, 20, 30)]
    assert pipeline.collect()["x"].to_pylist() == list(range(40))


def test_parallel_segments_end_at_stateful_operations():
    pipeline = numbers(100, split_rows=10).parallel(3)
    pipeline = pipeline.filter(lambda x: pc.less(x, 90)).sorted("k").map("y", lambda x: x)
    text = pipeline.explain()
    assert "3 threads, 10 parts; segment 1: filter(x), sorted(k); segment 2: map(y <- x)" in text
    expected = sorted(range(90), key=lambda value: value % 7)
    assert pipeline.collect()["y"].to_pylist() == expected


@pytest.mark.parametrize("buffers", [6, 400])
def test_parallel_segments_keep_their_rows_within_the_staging_buffers(
    tmp_path, monkeypatch, buffers
):
    """Of 10 MB between two segments, those that do not fit are in files, which are removed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen = []

    def look(x):
        seen.append(len(list(tmp_path.iterdir())))
        return x

    governor = Governor(Quantity(threads=2, buffers=buffers))
    pipeline = numbers(400_000, split_rows=40_000).governed_by(governor).parallel(2)
    pipeline = pipeline.sorted("k").map("y", look, ["x"]).distinct("x").map("z", look, ["x"])
    result = pipeline.collect()
    assert result["x"].to_pylist() == sorted(range(400_000), key=lambda value: value % 7)
    assert (max(seen) > 0) == (buffers == 6)
    assert not list(tmp_path.iterdir())
    assert governor.available == governor.budget
    with closing(pipeline.batches()) as reader:
        next(reader)
    assert not list(tmp_path.iterdir())


def test_an_error_in_a_thread_ends_the_pipeline_and_the_threads():
    def fail(x):
        if 20 in x.to_pylist():
            raise KeyError("part three")
        return x

    pipeline = numbers(100, split_rows=10).parallel(3).map("y", fail, ["x"])
    for _ in range(2):
        with pytest.raises(KeyError, match="part three"):
            pipeline.collect()
    assert not [each for each in threading.enumerate() if each.name.startswith("splitjoin")]


def test_the_governor_is_asked():
    scarce = Governor(Quantity(threads=1, buffers=1))
    pipeline = numbers(100, split_rows=10).sorted("k").governed_by(scarce)
    assert pipeline.parallel(4).count() == 100
    assert pipeline.parallel(4).collect().num_rows == 100
    with pytest.raises(FailureError, match="raise the governor's budget"):
        numbers(3).sorted("k").governed_by(Governor(Quantity())).collect()


def test_a_plan_is_explained():
    pipeline = (
        Pipeline.of_table(table_of([(1, 2)]), sorted_by=["x"])
        .filter(lambda x: pc.greater(x, 0))
        .update("y", abs)
        .sorted("x")
        .distinct("x", "y")
        .limit(3)
    )
    text = pipeline.explain()
    assert "pass 1    update(y)" in text
    assert "vanishes: its input is SORTED by x" in text
    assert "copy     none" in text
    assert "Limit -> reader: up to" in text
    assert (
        "copy     input -> update(y): non-mutating to mutating" in pipeline.fused(False).explain()
    )


def test_mistakes_are_named():
    with pytest.raises(UsageError, match="at least one column"):
        numbers(1).sorted()
    with pytest.raises(UsageError, match="at least one thread"):
        numbers(1).parallel(0)
    with pytest.raises(UsageError, match="as rows a whole number from 0 on"):
        numbers(1).limit(-1)
    with pytest.raises(UsageError, match="selected twice"):
        numbers(1).select("x", x="k")
    with pytest.raises(UsageError, match="'z'"):
        numbers(1).sorted("z").collect()
    with pytest.raises(UsageError, match="'z'"):
        numbers(1).filter(lambda z: z).collect()
    text = Pipeline.of_table(pa.table({"s": ["a"]}))
    with pytest.raises(UnsupportedTypeError, match="numbers"):
        text.to_arrays()
    with pytest.raises(UsageError, match="has nulls"):
        Pipeline.of_table(pa.table({"x": [None, 1]})).to_arrays()
    other = pa.record_batch({"x": [1.5]})
    with pytest.raises(UsageError, match="Batch 0 .* not the declared"):
        Pipeline.of_batches(lambda: [other], SCHEMA).collect()


def test_a_wrong_number_of_rows_is_noticed():
    class Liar(Source):
        def bind(self):
            inner = numbers(10).source.bind()
            return Bound(inner.schema, inner.traits, numbers(self.rows).source.bind().splits)

        def __str__(self):
            return "liar"

    for rows in (9, 11):
        liar = Liar()
        liar.rows = rows
        with pytest.raises(FailureError, match="declares 10 rows"):
            Pipeline(liar).to_arrays()
