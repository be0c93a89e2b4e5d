# SPDX-License-Identifier: Apache-2.0
"""Outer, semi and anti joins are those of the oracle and of Spark itself, in any partitions."""

from pathlib import Path
import random
import re

import pyarrow as pa
import pytest

from host import CountWindow, TimeWindow
from host.errors import FailureError, UsageError
from host.query.queries import Query, Term
from host.reference.types import JoinType
from spark_offload import explain, metrics, stream_join, verify
from spark_offload.verification.own_queries import own_join
from tests.host.tables import bundle, naive_results
from tests.spark_offload.test_join import collected, frames
from tests.spark_offload.test_usage import failure
from tests.windows import over

OTHERS = [kind for kind in JoinType if kind is not JoinType.INNER]
WINDOWS = [{"within": 9}, {"rows": 5}]
COUNTS = [1, 2, 7, 32]


def rows(seed, count, *, keys=5, span=90):
    """Random rows; a few have a null in a compared column."""
    rng = random.Random(seed)
    return [
        {
            "t": rng.randrange(span),
            "k": rng.choice([*range(keys), None]),
            "x": rng.choice([*range(40), None]),
        }
        for _ in range(count)
    ]


LEFT, RIGHT = rows(21, 70), rows(22, 60)
BAND = ([Term("x", "x", -3, 4)], {"band": {"x": (-3, 4)}})
EQUAL = ([Term("k", "k"), Term("x", "x", -9, 9)], {"on": "k", "band": {"x": (-9, 9)}})


def expected(left, right, how, terms, *, within=None, rows=None):
    """The rows of the answer in order, by the loop over rows."""
    window = CountWindow(rows) if within is None else TimeWindow(within)
    query = Query(band=terms, time="t", **over(window), how=how)
    schema = pa.schema([(name, pa.int64()) for name in "tkx"])
    found = naive_results(*(pa.Table.from_pylist(side, schema) for side in (left, right)), query)

    def columns(side, row):
        return (None,) * 3 if row is None else tuple(side[row].values())

    if not JoinType.of(how).has_pairs:
        return [columns(left, row) for row, _ in found]
    return [(*columns(left, row), *columns(right, other)) for row, other in found]


def joined(spark, left, right, how, partitions, **query):
    return stream_join(
        *frames(spark, left, right),
        time="t",
        how=how.value if isinstance(how, JoinType) else how,
        device="software:",
        partitions=partitions,
        **query,
    )


def is_same(spark, left, right, how, terms, partitions, **query):
    window = {name: value for name, value in query.items() if name in ("within", "rows")}
    answer = joined(spark, left, right, how, partitions, **query)
    wanted = expected(left, right, how, terms, **window)
    assert collected(answer) == wanted
    measured = metrics(answer)
    assert measured.total("left_rows") == len(left)
    assert measured.total("right_rows") == len(right)
    assert measured.total("results") == len(wanted)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("how", "partitions", "window"),
    [
        (JoinType.FULL, 7, {"within": 9}),
        (JoinType.LEFT, 2, {"rows": 5}),
        *(
            pytest.param(how, partitions, window, marks=pytest.mark.long)
            for how in OTHERS
            for partitions in COUNTS
            for window in WINDOWS
        ),
    ],
)
def test_any_number_of_ranges_gives_the_same_answer(spark, how, partitions, window):
    terms, query = BAND
    is_same(spark, LEFT, RIGHT, how, terms, partitions, **query, **window)


@pytest.mark.parametrize(
    ("how", "partitions"),
    [
        (JoinType.FULL, 7),
        (JoinType.LEFT_ANTI, 2),
        *(
            pytest.param(how, partitions, marks=pytest.mark.long)
            for how in OTHERS
            for partitions in COUNTS
        ),
    ],
)
def test_partitions_by_key_keep_rows_with_null_keys(spark, how, partitions):
    terms, query = EQUAL
    answer = joined(spark, LEFT, RIGHT, how, partitions, within=12, **query)
    wanted = expected(LEFT, RIGHT, how, terms, within=12)
    assert sorted(collected(answer), key=str) == sorted(wanted, key=str)
    parts = [tuple(map(tuple, part)) for part in answer.rdd.glom().collect()]
    assert len(parts) == partitions
    for part in parts:
        assert list(part) == [row for row in wanted if row in set(part)], "in order of arrival"


@pytest.mark.parametrize(
    ("by", "types"),
    [
        ("key", [JoinType.RIGHT, JoinType.LEFT_SEMI]),
        *(pytest.param(by, OTHERS, marks=pytest.mark.long) for by in ("key", "range")),
    ],
)
def test_rows_and_schema_are_those_of_sparks_own_join(spark, by, types):
    known = [[row for row in side if row["x"] is not None] for side in (LEFT, RIGHT)]
    left, right = frames(spark, *known, "t bigint not null, k int, x int not null")
    for how in types:
        answer = stream_join(
            left, right, on="k", time="t", within=12, how=how, device="software:",
            partitions=3, partition_by=by,
        )  # fmt: skip
        query = Query(on="k", time="t", within=12, how=how)
        own = own_join(left, right, query)
        assert answer.schema == own.schema
        assert sorted(collected(answer), key=str) == sorted(collected(own), key=str)


@pytest.mark.parametrize("window", [{"within": 0}, {"within": 200}, {"rows": 1}, {"rows": 50}])
@pytest.mark.parametrize("how", [JoinType.FULL, JoinType.LEFT_SEMI])
@pytest.mark.long
def test_windows_may_be_wider_than_a_range(spark, how, window):
    terms, query = BAND
    is_same(spark, LEFT, RIGHT, how, terms, 5, **query, **window)


@pytest.mark.long
@pytest.mark.parametrize("seeds", [[3], range(20)])
def test_random_queries_do_not_depend_on_the_partitions(spark, seeds):
    terms, query = BAND
    for seed in seeds:
        rng = random.Random(seed)
        span = rng.choice([3, 30, 3_000])
        # One side may be much slower than the other.
        left = rows(seed, rng.choice([0, 4, 60]), span=span)
        right = rows(seed + 100, rng.choice([3, 50]), span=span)
        window = rng.choice([{"within": rng.randrange(span)}, {"rows": 1 + rng.randrange(6)}])
        how = rng.choice(OTHERS)
        is_same(spark, left, right, how, terms, rng.choice([2, 3, 7]), **query, **window)


def test_what_a_join_answers_is_explained(spark):
    answer = joined(spark, LEFT, RIGHT, "leftouter", 2, within=3)
    assert explain(answer).join == ("left outer: the pairs, and every left row that is in none")
    assert "splitjoin(left outer join: " in answer._jdf.queryExecution().toString()
    assert answer.columns == ["t", "k", "x", "t_right", "k_right", "x_right"]
    assert joined(spark, LEFT, RIGHT, "semi", 1, within=3).columns == ["t", "k", "x"]


@pytest.mark.long
def test_a_share_is_verified_of_the_side_whose_rows_are_kept(spark):
    terms, query = EQUAL
    answer = joined(spark, LEFT, RIGHT, "right", 2, within=12, **query)
    assert (
        0 < verify(answer, share=0.5).rows < len(expected(LEFT, RIGHT, "right", terms, within=12))
    )
    answer = joined(spark, LEFT, RIGHT, "full", 2, within=12, **query)
    with pytest.raises(UsageError, match=r"share=0.5 of a full outer join.*share=1"):
        verify(answer, share=0.5)


@pytest.mark.long
def test_every_type_is_verified(spark):
    terms, query = EQUAL
    for how in OTHERS:
        answer = joined(spark, LEFT, RIGHT, how, 2, within=12, **query)
        assert verify(answer).rows == len(expected(LEFT, RIGHT, how, terms, within=12))


def test_where_no_accelerator_can_serve_software_joins_by_the_same_type(spark, tmp_path):
    equality = f"software:{bundle(tmp_path / 'equality', comparator='equality')}"
    left = spark.createDataFrame([(1, 0.5), (2, 1.75), (3, None)], "t bigint, x double")
    right = spark.createDataFrame([(1, 0.25), (2, 3.0)], "t bigint, x double")
    answer = stream_join(
        left, right, band={"x": (0, 1)}, time="t", within=5, how="left", device=equality
    )
    explanation = explain(answer)
    assert explanation.device == "software:"
    assert explanation.join.startswith("left outer: the pairs, and every left row")
    assert sorted(collected(answer)) == [
        (1, 0.5, 1, 0.25), (2, 1.75, None, None), (3, None, None, None),
    ]  # fmt: skip


@pytest.mark.long
def test_an_input_that_changes_is_named(spark, tmp_path):
    grown = tmp_path / "grown"
    marker = str(grown)

    def later(batches):
        import os

        for batch in batches:
            yield batch
            if os.path.exists(marker):
                yield pa.RecordBatch.from_arrays([pa.array([31])], schema=batch.schema)

    left = spark.range(60).coalesce(1).selectExpr("id as t").mapInArrow(later, "t long")
    answer = stream_join(left, left, time="t", rows=2, how="anti", device="software:", partitions=3)
    grown.touch()
    error = failure(answer)
    assert isinstance(error, FailureError)
    assert "input changed while it was joined" in str(error)


def test_another_type_is_refused(spark):
    inputs = frames(spark, LEFT, RIGHT)
    with pytest.raises(UsageError, match="how must be one of 'inner', 'left'.*not 'cross'"):
        stream_join(*inputs, time="t", within=3, how="cross", device="software:")


def test_the_example_of_the_page_prints_what_it_shows(spark, capsys):
    page = (Path(__file__).resolve().parents[2] / "docs" / "spark-batch.md").read_text()
    section = page.split("## Types of joins")[1]
    code, shown = re.findall(r"```(?:python|text)\n(.*?)```", section, re.DOTALL)[:2]
    inputs = re.search(r"^trades = .*?\nquotes = .*?\n", page, re.MULTILINE | re.DOTALL)[0]
    names = {"spark": spark, "stream_join": stream_join, "explain": explain}
    exec(inputs, names)
    exec(code, names)
    printed = capsys.readouterr().out
    for line in shown.splitlines():
        assert line == "..." or line in printed
