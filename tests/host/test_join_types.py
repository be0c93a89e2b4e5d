# SPDX-License-Identifier: Apache-2.0
"""Outer, semi and anti joins: each row once, with the pairs that it is in or alone."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host import Ordering, UsageError, open_device
from host.operators.verification import compare_pairs, reference_pairs
from host.pipeline import Pipeline
from host.query.queries import Query
from host.query.tables import output_schema
from host.reference.types import JoinType
from host.session.join import Join, join_tables
from tests.host.session.test_driver import random_table
from tests.host.session.test_stream_join import SHAPES, cut, query_of, reader, tables, tagged
from tests.host.tables import bundle, naive_results

OTHERS = [kind for kind in JoinType if kind is not JoinType.INNER]
QUERIES = [
    Query(band=[("x", "x", 0, 1)], time="t", rows=3),
    Query(on="name", time="t", rows=8),
    Query(on=["x", "name"], time="t", within=6),
    Query(band=[("x", "x", 9, None)], time="t", within=3),
    Query(time="t", within=0),
]


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


def results_of(pairs):
    """Rows of all results; None for no row."""
    return [
        tuple(None if row < 0 else row for row in pair)
        for pair in zip(*(rows.tolist() for rows in pairs), strict=True)
    ]


def rows_of(table, how):
    """Rows of all results as their own columns tell them."""
    left = table["row"].to_pylist()
    right = table["row_right"].to_pylist() if how.has_pairs else [None] * len(left)
    return list(zip(left, right, strict=True))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_reference_join_is_what_a_loop_over_rows_says(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    sizes = [data.draw(st.integers(0, 40)) for _ in range(2)]
    left, right = (random_table(rng, size, 30, nulls=0.2) for size in sizes)
    query = replace(data.draw(st.sampled_from(QUERIES)), how=data.draw(st.sampled_from(JoinType)))
    found = results_of(reference_pairs(left, right, query))
    assert found == naive_results(left, right, query)


@pytest.mark.few(6)
@pytest.mark.parametrize("how", OTHERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_answers_as_a_loop_over_rows_does(bundles, shape, how):
    rng = np.random.default_rng(len(shape))
    with open_device(f"software:{bundles[shape]}") as device:
        for query in QUERIES:
            query = replace(query, how=how)
            for sizes in [(120, 80), (0, 20), (20, 0), (0, 0), (2, 90)]:
                left, right = (random_table(rng, size, max(sizes)) for size in sizes)
                result = join_tables(left, right, query, device)
                expected = naive_results(left, right, query)
                assert results_of(result.pairs) == expected
                assert rows_of(result.table, how) == expected


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_streams_cut_anyhow_answer_as_a_loop_over_rows_does(bundles, data):
    left, right = data.draw(tables())
    how = data.draw(st.sampled_from(OTHERS))
    name = data.draw(st.sampled_from(["band", "timed", "several", "three", "all", "flags"]))
    query = query_of(name, how=how)
    sizes = {name: data.draw(st.integers(1, 50)) for name in ("batch_rows", "buffer_rows")}
    # A device is given few words at a time, and asked for few, so that much is open between.
    sizes |= {"low_water": 3, "result_words": 5}
    expected = naive_results(left, right, query)
    folder = bundles[data.draw(st.sampled_from(list(SHAPES)))]
    with open_device(f"software:{folder}") as device:
        readers = [reader(table, cut(data.draw, table)) for table in (left, right)]
        join = Join(*readers, query, device, record=True, **sizes)
        result = pa.Table.from_batches(list(join.batches()), schema=join.schema)
        assert results_of(join.measured.pairs) == expected
        assert rows_of(result, how) == expected
        for index, name in enumerate(left.column_names):
            column = left[name].to_pylist()
            assert result[index].to_pylist() == [
                None if row is None else column[row] for row, _ in expected
            ]
        both, layout = tagged(left, right)
        join = Join.of_tagged(reader(both, cut(data.draw, both)), layout, query, device, **sizes)
        result = pa.Table.from_batches(list(join.batches()), schema=join.schema)
        assert rows_of(result, how) == expected


@pytest.mark.few(3)
@pytest.mark.parametrize("how", OTHERS)
@pytest.mark.parametrize("ordering", [Ordering.none(), Ordering.relaxed(3)])
def test_other_orderings_have_the_same_results(bundles, how, ordering):
    rng = np.random.default_rng(9)
    left, right = random_table(rng, 150), random_table(rng, 150)
    with open_device(f"software:{bundles['groups']}") as device:
        for query in QUERIES[1:3]:
            result = join_tables(left, right, replace(query, how=how, ordering=ordering), device)
            expected = naive_results(left, right, replace(query, how=how))
            assert sorted(results_of(result.pairs), key=str) == sorted(expected, key=str)


@pytest.mark.parametrize("how", OTHERS)
def test_a_traced_join_has_latencies_of_its_pairs(bundles, how):
    rng = np.random.default_rng(10)
    left, right = random_table(rng, 90), random_table(rng, 90)
    query = replace(QUERIES[2], how=how)
    with open_device(f"software:{bundles['groups']}") as device:
        result = join_tables(left, right, query, device, trace=True)
    expected = naive_results(left, right, query)
    assert results_of(result.pairs) == expected
    pairs = [pair for pair in expected if None not in pair]
    assert len(result.latency.visiting) == len(result.latency.emitted) == len(pairs)
    assert (result.latency.visiting >= 0).all()


def test_columns_for_want_of_a_row_are_nullable():
    left = pa.schema([pa.field("t", pa.int64(), nullable=False), pa.field("a", pa.int8())])
    right = pa.schema([pa.field("t", pa.int64(), nullable=False)])
    nullable = {
        kind: [field.nullable for field in output_schema(left, right, "_r", kind)]
        for kind in JoinType
    }
    assert nullable == {
        JoinType.INNER: [False, True, False],
        JoinType.LEFT: [False, True, True],
        JoinType.RIGHT: [True, True, False],
        JoinType.FULL: [True, True, True],
        JoinType.LEFT_SEMI: [False, True],
        JoinType.LEFT_ANTI: [False, True],
    }


def test_columns_of_every_type_can_be_null_for_want_of_a_row():
    table = pa.table(
        {
            "t": pa.array([1, 50]),
            "codes": pa.array(["x", "y"]).dictionary_encode(),
            "list": pa.array([[1], [2]]),
            "struct": pa.array([{"a": 1}, {"a": 2}]),
            "date": pa.array([1, 2], pa.int32()).cast(pa.date32()),
        }
    )
    query = Query(time="t", within=3, how="full")
    with open_device("software:") as device:
        result = join_tables(table.slice(0, 1), table, query, device).table
        lonely = join_tables(table.slice(0, 0), table, query, device).table
    assert result.slice(1).to_pylist() == [
        {**dict.fromkeys(table.column_names), **{f"{k}_right": v for k, v in row.items()}}
        for row in table.slice(1).to_pylist()
    ]
    assert lonely.num_rows == 2
    assert lonely["list"].null_count == 2


def test_an_answer_that_differs_in_a_missing_row_is_named():
    verdict = compare_pairs(
        (np.array([3]), np.array([-1])), (np.array([3]), np.array([4])), ordered=True
    )
    assert not verdict.agrees
    assert "left row 3 with no right row, not left row 3 with right row 4" in verdict.text


@pytest.mark.parametrize(
    ("spelling", "kind"),
    [
        ("inner", "inner"), ("Outer", "full"), ("full_outer", "full"), ("leftouter", "left"),
        ("LEFT_OUTER", "left"), ("right", "right"), ("semi", "left_semi"), ("anti", "left_anti"),
    ],
)  # fmt: skip
def test_types_have_the_spellings_of_spark(spelling, kind):
    assert JoinType.of(spelling) is JoinType(kind)


@pytest.mark.parametrize("how", ["cross", "", None, 3])
def test_another_type_is_refused(how):
    with pytest.raises(UsageError, match=r"how must be one of 'inner', 'left'.*, not"):
        Query(time="t", rows=1, how=how)


def nothing_but_nulls(rows, batch):
    for begin in range(0, rows, batch):
        yield pa.record_batch(
            {"t": pa.array(range(begin, begin + batch)), "x": pa.nulls(batch, pa.int64())}
        )


@pytest.mark.parametrize("how", ["left", "left_anti", "full"])
def test_rows_that_match_nothing_pass_as_the_window_does(bundles, how):
    rows, batch = 60_000, 500
    schema = next(nothing_but_nulls(batch, batch)).schema
    query = Query(on="x", time="t", within=2000, sorted=True, how=how)
    kept, results = [], 0
    with open_device(f"software:{bundles['groups']}") as device:
        readers = [
            pa.RecordBatchReader.from_batches(schema, nothing_but_nulls(rows, batch))
            for _ in range(2)
        ]
        join = Join(*readers, query, device, buffer_rows=1000, batch_rows=1000)
        for result in join.batches():
            results += result.num_rows
            kept.append(max(store.kept for store in join.params.rows))
    assert results == rows * (2 if how == "full" else 1)
    assert max(kept) < 25_000
    assert len(kept) > 10


def test_a_pipeline_ends_in_any_join(bundles):
    rng = np.random.default_rng(4)
    left, right = random_table(rng, 60), random_table(rng, 60)
    query = replace(QUERIES[2], how="left")
    with open_device(f"software:{bundles['groups']}") as device:
        joined = Pipeline.of_table(left).join(Pipeline.of_table(right), query, device)
        result = joined.collect()
    assert rows_of(result, query.how) == naive_results(left, right, query)
    assert "left outer join" in str(query)
