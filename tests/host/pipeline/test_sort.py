# SPDX-License-Identifier: Apache-2.0
from contextlib import closing

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host.errors import FailureError
from host.pipeline.operations import Limit, LimitParams
from host.pipeline.sorting import (
    Sort,
    SortedMerge,
    SortedMergeParams,
    SortParams,
    sorting_permutation,
)
from host.runtime import ExecStreamGraph, Governor, Quantity, Quantum, Scheduler
from host.runtime.source import ArrowSource, ArrowSourceParams
from host.runtime.testing import MockProducer, MockProducerParams, values_of


def sort_graph(batches, by, buffers=64, **params):
    graph = ExecStreamGraph(8, Governor(Quantity(buffers=buffers)))
    source = graph.add(ArrowSource(), ArrowSourceParams(supply=lambda: batches, rows=7))
    sort = graph.add(Sort(), SortParams(by=by, **params))
    graph.connect(source, sort)
    graph.prepare()
    return graph, sort


def pairs(batches):
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


KEY = st.one_of(st.none(), st.integers(-3, 3))


@given(st.lists(st.tuples(KEY, KEY), max_size=40), st.integers(1, 20), st.integers(1, 30))
def test_rows_are_sorted_stably_with_nulls_last(rows, output_rows, quantum):
    batch = pa.record_batch(
        {
            "x": pa.array([row[0] for row in rows], pa.int64()),
            "y": pa.array([row[1] for row in rows], pa.int64()),
            "n": np.arange(len(rows)),
        }
    )
    graph, _ = sort_graph([batch], ["x", "y"], rows=output_rows)
    for _ in range(2):
        got = pairs(Scheduler(graph, Quantum(quantum)).run())
        expected = sorted(
            ((*row, n) for n, row in enumerate(rows)),
            key=lambda row: [(value is None, value or 0) for value in row[:2]],
        )
        assert got == expected


@pytest.mark.parametrize(
    ("kind", "bits", "signed"),
    [
        (pa.int8(), 8, True), (pa.uint8(), 8, False), (pa.int64(), 64, True),
        (pa.uint64(), 64, False), (pa.date32(), 32, True), (pa.timestamp("ns"), 64, True),
        (pa.duration("us"), 64, True),
    ],
    ids=str,
)  # fmt: skip
@settings(max_examples=30)
@given(data=st.data())
def test_integers_and_times_of_every_width_are_sorted_stably(kind, bits, signed, data):
    low = -(1 << bits - 1) if signed else 0
    values = data.draw(st.lists(st.integers(low, low + (1 << bits) - 1), max_size=20))
    values += data.draw(st.lists(st.sampled_from(values), max_size=5)) if values else []
    plain = pa.array(values, f"{'' if signed else 'u'}int{bits}")
    found = sorting_permutation(pa.table({"x": plain.cast(kind)}), ["x"])
    assert found.to_pylist() == sorted(range(len(values)), key=values.__getitem__)


@settings(max_examples=10)
@given(st.integers(0, 1 << 32), st.integers(1, 5))
def test_runs_are_spilled_and_merged(tmp_path_factory, seed, spread):
    folder = tmp_path_factory.mktemp("spill")
    values = np.random.default_rng(seed).integers(0, 10**spread, 400_000)
    table = pa.table({"x": values, "n": np.arange(len(values))})
    batches = table.to_batches(50_000)
    graph = ExecStreamGraph(1 << 16, Governor(Quantity(buffers=3)))
    source = graph.add(ArrowSource(), ArrowSourceParams(supply=lambda: batches))
    sort = graph.add(Sort(), SortParams(by=["x"], folder=folder))
    graph.connect(source, sort)
    graph.prepare()
    with closing(Scheduler(graph).read()) as reader:
        next(reader)
        assert list(folder.iterdir())
    assert not list(folder.iterdir())
    result = pa.Table.from_batches(Scheduler(graph).run())
    assert sort.spilled > 3 << 20
    order = np.argsort(values, kind="stable")
    assert np.array_equal(result["n"].to_numpy(), order)
    assert not list(folder.iterdir())


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    batch = pa.record_batch({"x": np.arange(400_000)})
    graph, _ = sort_graph([batch] * 3, ["x"], buffers=1, folder=tmp_path / "missing")
    with pytest.raises(FailureError, match="missing"):
        Scheduler(graph).run()


@given(
    st.lists(st.lists(st.integers(0, 5), max_size=20), min_size=1, max_size=4),
    st.integers(1, 6),
    st.integers(1, 6),
)
def test_sorted_inputs_are_merged_stably(parts, batch_rows, quantum):
    graph = ExecStreamGraph(batch_rows)
    merge = graph.add(SortedMerge(), SortedMergeParams(by=["x"]))
    for number, part in enumerate(parts):
        rows = [{"x": x, "input": number, "n": n} for n, x in enumerate(sorted(part))]
        schema = pa.schema([("x", pa.int64()), ("input", pa.int64()), ("n", pa.int64())])
        batches = [pa.RecordBatch.from_pylist(rows, schema=schema)]
        params = ArrowSourceParams(supply=lambda batches=batches: batches, rows=batch_rows)
        graph.connect(graph.add(ArrowSource(), params), merge)
    graph.prepare()
    got = pairs(Scheduler(graph, Quantum(quantum)).run())
    assert got == sorted(got)
    assert len(got) == sum(map(len, parts))


@given(st.integers(0, 30), st.integers(0, 12), st.integers(0, 12), st.integers(1, 9))
def test_limit_passes_the_first_rows(rows, limit, skip, quantum):
    graph = ExecStreamGraph(4)
    source = graph.add(MockProducer(), MockProducerParams(rows=rows, batch_rows=3))
    stream = graph.add(Limit(), LimitParams(rows=limit, skip=skip))
    graph.connect(source, stream)
    graph.prepare()
    for _ in range(2):
        got = values_of(Scheduler(graph, Quantum(quantum)).run())
        assert got == list(range(rows))[skip : skip + limit]


def test_a_limit_that_is_reached_closes_the_streams_before_it_at_once():
    graph = ExecStreamGraph(10)
    source = graph.add(MockProducer(), MockProducerParams(rows=10**9, batch_rows=10))
    limit = graph.add(Limit(), LimitParams(rows=25))
    graph.connect(source, limit)
    graph.prepare()
    with closing(Scheduler(graph).read()) as reader:
        rows = 0
        for batch in reader:
            rows += batch.num_rows
            if rows == 25:
                assert source.closed == 1
    assert rows == 25
