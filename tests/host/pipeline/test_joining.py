# SPDX-License-Identifier: Apache-2.0
from contextlib import closing

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from host import UsageError, open_device
from host.errors import OrderError
from host.pipeline import Pipeline
from host.query.queries import Query
from host.query.tables import output_schema
from tests.host.tables import bundle, naive_join

SCHEMA = pa.schema([("t", pa.int64()), ("x", pa.int64()), ("row", pa.int64())])
ROWS = st.lists(
    st.tuples(st.integers(0, 30), st.one_of(st.none(), st.integers(-4, 4))), max_size=40
)


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    """The result words of three cores, from the reference join."""
    folder = tmp_path_factory.mktemp("bundle")
    parameters = {"cores": 3, "sub_window": 20, "probes": 4, "lanes": 2, "timestamp_bits": 20}
    with open_device(f"software:{bundle(folder / 'three', keys=('x16',), **parameters)}") as opened:
        yield opened


def table_of(rows):
    return pa.Table.from_pylist(
        [{"t": t, "x": x, "row": row} for row, (t, x) in enumerate(rows)], schema=SCHEMA
    )


def expected(left, right, query):
    """The joined rows; ties of one table in its own order, as a stable sort leaves them."""
    pairs = naive_join(left, right, query)
    names = output_schema(left.schema, right.schema).names
    sides = left.to_pylist(), right.to_pylist()
    return [
        dict(zip(names, (*sides[0][r].values(), *sides[1][s].values()), strict=True))
        for r, s in pairs
    ]


QUERIES = [
    Query(band=[("x", "x", -1, 1)], time="t", rows=9),
    Query(on="x", time="t", within=3),
]


@settings(max_examples=30)
@given(ROWS, ROWS, st.sampled_from(QUERIES), st.booleans(), st.data())
def test_a_join_in_a_pipeline_does_what_a_loop_does(device, left, right, query, is_sorted, data):
    if is_sorted:
        left, right = (sorted(rows, key=lambda row: row[0]) for rows in (left, right))
    tables = [table_of(rows) for rows in (left, right)]
    sorted_by = ["t"] if is_sorted else []

    def side(table):
        made = Pipeline.of_table(table, sorted_by=sorted_by, split_rows=7)
        return made.batch_rows(data.draw(st.integers(1, 9))).parallel(data.draw(st.integers(1, 3)))

    joined = side(tables[0]).join(side(tables[1]), query, device)
    want = expected(*tables, query)
    limit = data.draw(st.integers(0, 9))
    with closing(joined.limit(limit).batches()) as reader:
        got = [row for batch in reader for row in batch.to_pylist()]
    assert got == want[:limit]
    assert joined.collect().to_pylist() == want
    unordered = joined.unordered().collect().to_pylist()
    assert sorted(unordered, key=str) == sorted(want, key=str)
    assert joined.count() == len(want)


@settings(max_examples=20)
@given(ROWS, ROWS, st.sampled_from(QUERIES), st.integers(1, 9))
def test_the_results_of_either_side_go_to_a_consumer_of_their_own(
    tmp_path_factory, device, left, right, query, size
):
    """On a tie a right row is the later one, and each consumer has the order of its side."""
    path = tmp_path_factory.mktemp("sides") / "of_right.parquet"
    tables = [table_of(rows) for rows in (left, right)]
    sides = [Pipeline.of_table(table).batch_rows(size) for table in tables]
    later = ["t", "t_right"]
    joined = sides[0].join(sides[1], query, device)
    of_left = joined.tee(path, pc.less_equal, later).filter(pc.greater, later).collect().to_pylist()
    of_right = pq.read_table(path).to_pylist()
    want = expected(*tables, query)
    assert of_right == [row for row in want if row["t_right"] >= row["t"]]
    assert of_left == [row for row in want if row["t_right"] < row["t"]]


def test_a_consumer_that_does_not_mind_the_order_relaxes_the_device(device):
    table = table_of([(t, 0) for t in range(20)])
    prepared = []
    joined = Pipeline.of_table(table).join(
        Pipeline.of_table(table, sorted_by=["t"]), QUERIES[0], device, started=prepared.append
    )
    text = joined.explain()
    assert "left is sorted first, by t; right is SORTED by t; ordering outer" in text
    assert "ordering none, as nothing observes it" in joined.unordered().explain()
    prepared.clear()
    joined.count()
    joined.collect()
    assert [str(join.params.query.ordering) for join in prepared] == ["none", "outer"]
    assert prepared[1].measured.staged.rows == 40


def test_distinct_keys_let_an_index_stop_at_the_first_match(device):
    table = table_of([(t, t) for t in range(9)])
    prepared = []

    def run(query, **known):
        right = Pipeline.of_table(table, sorted_by=["t"], **known)
        joined = Pipeline.of_table(table).join(right, query, device, started=prepared.append)
        return joined.explain()

    assert "DISTINCT" not in run(QUERIES[1])
    assert "one match at most on the right: its keys are DISTINCT" in run(
        QUERIES[1], distinct_by=["x"]
    )
    assert prepared[-1].params.options.distinct == (False, True)
    assert "DISTINCT" not in run(QUERIES[1], distinct_by=["row"])
    assert "DISTINCT" not in run(QUERIES[0], distinct_by=["x"])  # a band may match several


@pytest.mark.parametrize("side", ["left", "right"])
def test_keys_that_are_not_distinct_as_declared_are_an_error(device, side):
    known = {"left": {}, "right": {}}
    known[side] = {"distinct_by": ["x"]}
    repeated = table_of([(t, t % 3) for t in range(20)])
    left, right = (Pipeline.of_table(repeated, sorted_by=["t"], **known[at]) for at in known)
    joined = left.join(right, QUERIES[1], device)
    for asked in (joined.collect, joined.count, joined.limit(5).collect):
        with pytest.raises(OrderError, match="row 3 .* has x=0 as another row has"):
            asked()


def test_operations_around_a_join(device):
    rows = [(t, t % 3) for t in range(50)]
    table = table_of(rows)
    even = Pipeline.of_table(table).filter(lambda row: pc.equal(pc.bit_wise_and(row, 1), 0))
    joined = (
        even.join(Pipeline.of_table(table), QUERIES[1], device)
        .filter(lambda row, row_right: pc.less(row, row_right))
        .select("row", other="row_right")
        .sorted("other", "row")
    )
    pairs = [
        (left, right)
        for left in range(0, 50, 2)
        for right in range(50)
        if left % 3 == right % 3 and left < right <= left + 3
    ]
    assert [tuple(row.values()) for row in joined.collect().to_pylist()] == sorted(
        pairs, key=lambda pair: pair[::-1]
    )


def test_ranges_of_a_file_tell_how_wide_the_values_are(device, tmp_path):
    """x lies far from zero, but close together: 16 bits hold it, which only the file can tell."""
    far = pa.table({"t": np.arange(100), "x": np.arange(100) + 10**15})
    pq.write_table(far, tmp_path / "far.parquet")
    side = Pipeline.of_parquet(tmp_path / "far.parquet", sorted_by=["t"])
    assert side.execution().traits.ranges["x"] == (10**15, 10**15 + 99)
    assert side.select(y="x").execution().traits.ranges == {"y": (10**15, 10**15 + 99)}
    assert side.update("x", abs).execution().traits.ranges == {"t": (0, 99)}
    query = Query(on="x", time="t", rows=50)
    assert side.join(side, query, device).count() == 100


def test_sorted_pipelines_are_merged():
    tables = [pa.table({"t": values, "n": [n] * len(values)}) for n, values in enumerate(
        [[3, 1, 2], [], [2, 2, 0]]
    )]  # fmt: skip
    tables[1] = tables[0].slice(0, 0)
    first, *others = (Pipeline.of_table(table) for table in tables)
    merged = first.merge(*others, by="t")
    assert [tuple(row.values()) for row in merged.collect().to_pylist()] == [
        (0, 2), (1, 0), (2, 0), (2, 2), (2, 2), (3, 0)
    ]  # fmt: skip
    assert merged.sorted("t").execution().steps[1].vanishes
    with pytest.raises(UsageError, match="differ in their columns"):
        first.merge(Pipeline.of_table(pa.table({"t": [1]})), by="t").collect()
    with pytest.raises(UsageError, match="at least one column"):
        first.merge(by=[])


def test_mistakes_are_named(device):
    table = table_of([(1, 1)])
    side = Pipeline.of_table(table)
    missing = Query(time=("t", "z"), rows=1)
    with pytest.raises(UsageError, match="'z'"):
        side.join(side, missing, device).collect()
    nulls = Pipeline.of_table(pa.table({"t": pa.array([None, 1]), "x": [1, 2], "row": [0, 1]}))
    with pytest.raises(OrderError):
        side.join(nulls, QUERIES[0], device).collect()


@settings(max_examples=15)
@given(ROWS, ROWS, st.sampled_from(QUERIES))
def test_matches_are_aggregated_for_each_row_of_a_pipeline(device, left, right, query):
    rows, others = table_of(left), table_of(right)
    kept = Pipeline.of_table(rows).filter(lambda row: row.to_numpy() % 3 != 1)
    found = kept.join_aggregate(
        Pipeline.of_table(others), query, {"n": "count", "last": "max:row"}, device
    )
    chosen = kept.collect()
    pairs = naive_join(chosen, others, query)
    matches = [[s for r, s in pairs if r == at] for at in range(chosen.num_rows)]
    assert found.column("n").to_pylist() == [len(each) for each in matches]
    assert found.column("last").to_pylist() == [max(each, default=None) for each in matches]
    assert found.select(SCHEMA.names) == chosen
