# SPDX-License-Identifier: Apache-2.0
import json

import pyarrow.compute as pc
import pytest

from bench.spark.__main__ import main
from bench.spark.bands import tagged_rows, task_seconds
from spark_offload.cli.demo import Benchmark


@pytest.mark.long
def test_all_ways_have_one_answer(spark, tmp_path, capsys):
    path = tmp_path / "bench" / "spark.json"
    words = ["bands", "--tuples", "2000", "--window", "800", "--turns", "2"]
    assert main([*words, "--device", "software:", "--output", str(path)]) == 0
    shown = capsys.readouterr()
    turns = [line for line in shown.err.splitlines() if line.endswith(" rows")]
    rows = [line.rpartition(", ")[2] for line in turns]
    joins, aggregates = rows[:7], rows[7:]
    assert len(set(joins)) == 1
    # Two turns of two ways, for windows of 16 panes and of one: each row of a window once.
    assert [len(set(four)) for four in (aggregates[:4], aggregates[4:])] == [1, 1]
    assert len(aggregates) == 8
    names = [row["name"] for row in json.loads(path.read_text())]
    assert names == [
        "spark.first_join_s",
        "spark.plan_s",
        "spark.band.speedup_vs_spark",
        "spark.band.speedup_vs_expert",
        "spark.overhead_us_per_row",
        "spark.task.software_us_per_row",
        "spark.aggregate.speedup_vs_spark",
        "spark.aggregate.tumbling_speedup_vs_spark",
    ]
    assert all(name in shown.out for name in names)


@pytest.mark.long
def test_clustered_streams_have_a_figure_of_their_own(spark, tmp_path, capsys):
    path = tmp_path / "bench" / "clustered.json"
    words = ["bands", "--deviation", "100", "--tuples", "2000", "--window", "200", "--turns", "2"]
    words += ["--device", "software:", "--without-own", "--output", str(path)]
    assert main(words) == 0
    rows = [line.rpartition(", ")[2] for line in capsys.readouterr().err.splitlines()]
    assert len({row for row in rows if row.endswith(" rows")}) == 1
    assert [row["name"] for row in json.loads(path.read_text())] == [
        "spark.clustered.speedup_vs_expert"
    ]


@pytest.mark.parametrize("deviation", ["-1", "10001", "nan"])
def test_a_deviation_that_the_fields_cannot_have_is_an_error(capsys, deviation):
    assert main(["bands", "--deviation", deviation]) == 2
    assert "--deviation must be from 0 to 10000" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--tuples", "--window", "--turns"])
def test_a_number_that_makes_no_sense_is_an_error(capsys, option):
    assert main(["bands", option, "0"]) == 2
    assert f"{option} must be at least 1" in capsys.readouterr().err


def test_the_task_that_is_timed_alone_gets_every_row_in_order():
    benchmark = Benchmark(rows=300, window=40)
    left, right = benchmark.tables()
    rows = tagged_rows(left, right)
    order = list(zip(rows["order"].to_pylist(), rows["side"].to_pylist(), strict=True))
    assert order == sorted(order)
    for tag, letter, table in ((0, "l", left), (1, "r", right)):
        own = rows.filter(pc.equal(rows["side"], tag))
        columns = [own[f"{letter}{at}"] for at in range(table.num_columns)]
        assert [column.to_pylist() for column in columns] == [
            column.to_pylist() for column in table.columns
        ]
    assert len(task_seconds(benchmark, 2)) == 2
