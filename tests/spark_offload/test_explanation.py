# SPDX-License-Identifier: Apache-2.0
"""What an explanation and the metrics tell, and what a notebook shows of them."""

from pathlib import Path
import re

import pytest

from host import Manifest
from host.protocol.cost_model import JoinSize
from host.query.queries import Query
from spark_offload import explain, metrics, stream_join
from spark_offload.explanation import NESTED_LOOPS, InputSize, estimate_cost, join_size
from spark_offload.measures import JoinMetrics, TaskMetrics
from spark_offload.partitioning.ranges import OrderProfile
from spark_offload.plan.plan import plan_of
from tests.host.tables import bundle
from tests.spark_offload.test_join import LEFT, RIGHT, frames

EQUI_JOINS = ("BroadcastHashJoin", "SortMergeJoin", "ShuffledHashJoin")
ROOT = Path(__file__).resolve().parents[2]


def test_a_join_tells_its_size_and_cost(spark, simulated_bundle):
    left, right = (
        spark.range(count).selectExpr("id as t", "cast(id % 90 as int) as x")
        for count in (900, 600)
    )
    joined = stream_join(
        left, right, band={"x": (0, 1)}, time="t", within=40, device=simulated_bundle
    )
    unread = explain(joined)
    assert unread.offloaded
    assert unread.inputs.rows is None
    assert unread.cost.cycles is None
    assert unread.cost.operator in EQUI_JOINS
    assert unread.cost.pairs is None
    assert "explain(frame, count=True)" in str(unread)
    read = explain(joined, count=True)
    assert read.inputs.rows == (900, 600)
    assert min(read.inputs.bytes) > 0
    assert read.cost.pairs is None
    joined.collect()
    done = metrics(joined)
    # Three cores of two lanes, groups of four: a window of 40 rows is no more than the tuples take.
    assert 1_500 <= read.cost.cycles <= done.total("cycles") <= 2 * read.cost.cycles


@pytest.fixture
def no_bundle(monkeypatch):
    """As on a machine that has no bundle to estimate cycles by."""
    monkeypatch.setattr("spark_offload.plan.join.known_accelerator", lambda query: None)


def test_an_equality_is_a_hash_or_merge_join_of_which_nothing_is_known(spark, no_bundle):
    left, right = frames(spark, LEFT, RIGHT)
    joined = stream_join(left, right, on="k", time="t", within=9, device="software:")
    cost = explain(joined, count=True).cost
    assert cost.operator in EQUI_JOINS
    assert cost.pairs is None
    assert cost.cycles is None  # the software engine has no clock


def test_a_window_that_excludes_nothing_is_a_nested_loop_whose_pairs_are_counted(spark):
    left, right = frames(spark, LEFT, RIGHT)
    query = Query(time="t", within=1 << 62)
    cost = estimate_cost(left, right, query, None, JoinSize((900.0, 600.0), (900.0, 600.0)))
    assert cost.operator in NESTED_LOOPS
    assert cost.pairs == 540_000


def test_last_rows_are_no_join_of_spark(spark):
    left, right = frames(spark, LEFT, RIGHT)
    joined = stream_join(left, right, on="k", time="t", rows=9, device="software:")
    assert explain(joined).cost.operator is None
    assert "Spark alone has no join over the last rows" in str(explain(joined))


def test_keys_divide_both_the_rows_and_the_windows(spark, simulated_bundle):
    left, right = frames(spark, LEFT, RIGHT)
    manifest = Manifest.load(simulated_bundle.partition(":")[2])
    joined = stream_join(left, right, on="k", time="t", within=9, device="software:")
    query = plan_of(joined).query
    size = JoinSize((10_000.0, 10_000.0), (180.0, 180.0))
    one = estimate_cost(left, right, query, manifest, size)
    four = estimate_cost(left, right, query, manifest, size, 4)
    assert one.cycles == 2_500 * 31  # (180 + 3) / 3 keys in 2 lanes, from either lane on
    assert four.cycles == 4 * 625 * 9  # as many as the tuples take


@pytest.mark.parametrize(("width", "expected"), [(0, 0), (100, 100), (5_000, 3_750)])
def test_the_mean_window_follows_from_how_rows_lie_in_time(spark, width, expected):
    even = OrderProfile((10_000, 10_000), 0, 9_999, tuple(range(39, 9_999, 40)))
    left, right = frames(spark, LEFT, RIGHT)
    joined = stream_join(left, right, on="k", time="t", within=9, device="software:")
    query = plan_of(joined).query
    size = join_size(query, even, width)
    assert size.rows == (10_000, 10_000)
    assert size.windows == pytest.approx((expected, expected), rel=0.02, abs=2)


def test_what_cannot_be_offloaded_has_a_cause_and_a_remedy(spark, tmp_path):
    left = spark.createDataFrame([(1, 2, 1.0, 1)], "t bigint, x int, y float, z int")
    three = {"comparator": "equality", "keys": ["x32"] * 3, "timestamp_bits": 16}
    device = f"software:{bundle(tmp_path / 'equality', **three)}"
    band = {"x": (0, 1), "y": (0, 1)}
    joined = stream_join(left, left, on="z", band=band, time="t", within=5, device=device)
    explanation = explain(joined)
    assert not explanation.offloaded
    (cause,) = explanation.causes
    assert "for equality only, but the query has '0 <= left.x - right.x <= 1'" in cause.reason
    assert cause.remedy == "use a bundle with comparator 'band'"
    assert str(explanation).startswith("not offloaded")


def test_the_name_in_sparks_plan_tells_predicate_window_cores_and_device(
    spark, simulated_bundle, capsys
):
    left, right = frames(spark, LEFT, RIGHT)
    joined = stream_join(left, right, on="k", time="t", within=9, device=simulated_bundle)
    joined.explain()
    name = "splitjoin(left.k = right.k, within |left.t - right.t| <= 9; 3 cores on sim:bundle)"
    assert f"MapInArrow {name}" in capsys.readouterr().out
    assert explain(joined).name == name


def test_a_notebook_shows_tables(spark):
    left, right = frames(spark, LEFT, RIGHT)
    joined = stream_join(left, right, band={"x": (-1, 1)}, time="t", within=9, device="software:")
    shown = explain(joined)._repr_html_()
    assert "<th>window</th>" in shown
    assert "-1 &lt;= left.x" in shown


def test_metrics_are_a_table_with_a_sum():
    counters = {"ingress_stalled": 250, "output_stalled": 10}
    tasks = tuple(
        TaskMetrics(
            partition=number,
            left_rows=1_000,
            right_rows=2,
            results=7,
            seconds=1.5,
            device_seconds=0.25,
            cycles=1_000,
            counters=counters,
            copied_bytes=64,
        )
        for number in range(2)
    )
    found = JoinMetrics(tasks)
    rows = {row[0]: dict(zip(found.table()[0], row, strict=True)) for row in found.table()[1:]}
    assert rows["1"]["input stalled"] == "25.0%"
    assert rows["all"]["left rows"] == "2,000"
    assert rows["all"]["output stalled"] == "1.0%"
    assert rows["all"]["copied bytes"] == "128"
    assert rows["all"]["in device"] == "0.50"
    assert len(str(found).splitlines()) == 4
    assert "<td>2,000</td>" in found._repr_html_()
    assert len(JoinMetrics(tasks[:1]).table()) == 2


def test_sizes_are_written_with_what_is_known():
    assert str(InputSize((1, 2_000), (1_234_567, None))) == (
        "left 1 rows, 1.23 MB by Spark's estimate; right 2,000 rows"
    )
    assert "left of unknown size" in str(InputSize(None, (None, 5)))


def test_the_page_about_the_explanation_shows_what_is_printed(spark, no_bundle, capsys):
    """The Python of the page, in this session; times and addresses may differ."""
    text = (ROOT / "docs" / "spark-explanation.md").read_text()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    code = "\n".join(body for language, body in blocks if language == "python")
    code = code.replace('spark = open_session("explanation", master="local[2]")\n', "")
    exec(compile(code, "docs/spark-explanation.md", "exec"), {"spark": spark})
    printed = capsys.readouterr().out
    explained, measured, failed = (body for language, body in blocks if language == "text")
    assert explained in printed
    # All but the times of the last row.
    told, _, error = printed.partition("OrderError(")
    assert measured.split()[:-3] == told[told.index("partition  left") :].split()[:-3]
    message = " ".join(failed.split("\nhost.errors.")[0].split()).partition(": ")[2]
    assert message in error
