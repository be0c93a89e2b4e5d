# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from bench.spark.__main__ import main
from bench.spark.matches import PAIRS, REDUCED, SPARK, MatchesBenchmark
from hdl.presets import PRESETS
from tests.host.small_bundles import write_manifest
from tests.spark_offload.stream_folders import rows_of


@pytest.fixture(scope="module")
def reducing(tmp_path_factory):
    """The address of a model of a join aggregate."""
    folder = tmp_path_factory.mktemp("bundle")
    return f"software:{write_manifest(PRESETS['demo-join-aggregate'], folder)}"


@pytest.mark.long
@pytest.mark.parametrize("matches", [0.7, 12])
def test_all_ways_have_the_same_rows_and_so_many_matches(spark, reducing, matches):
    benchmark = MatchesBenchmark(600, 128, matches, columns=2)
    left, right = (spark.createDataFrame(table.to_pandas()) for table in benchmark.tables())
    expert = benchmark.by_expert(left, right)
    wanted = rows_of(expert)
    plans = benchmark.ways(left, right, reducing, "software:")
    assert set(plans) == {REDUCED, PAIRS}
    for make in plans.values():
        answer = make().dataframe()
        assert answer.columns == expert.columns
        assert rows_of(answer) == wanted
    counts = [row.n for row in expert.where("t between 200 and 1000").collect()]
    assert sum(counts) / len(counts) == pytest.approx(matches, rel=0.25)


@pytest.mark.long
def test_the_command_prints_ratios_and_what_a_left_row_costs(spark, reducing, tmp_path, capsys):
    path = tmp_path / "bench" / "matches.json"
    words = ["matches", "--rows", "2000", "--window", "128", "--matches", "9"]
    words += ["--turns", "2", "--device", reducing, "--pairs-device", "software:"]
    assert main([*words, "--output", str(path)]) == 0
    shown = capsys.readouterr()
    assert [shown.err.count(f"{way}: ") for way in (REDUCED, PAIRS, SPARK)] == [2, 2, 2]
    rows = {row["name"]: row["value"] for row in json.loads(path.read_text())}
    assert list(rows) == [
        "spark.matches.speedup_vs_pairs",
        "spark.matches.speedup_vs_spark",
        "spark.matches.processor_vs_pairs",
        "spark.matches.processor_vs_spark",
        "spark.matches.words_per_left_row",
        "spark.matches.cycles_per_left_row",
        "spark.matches.pairs_words_per_left_row",
        "spark.matches.pairs_cycles_per_left_row",
    ]
    assert all(name in shown.out for name in rows)
    assert all(value > 0 for name, value in rows.items() if "per_left_row" not in name)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rows", "0"], "--rows must be at least 1, not 0"),
        (["--columns", "0"], "--columns must be at least 1"),
        (["--window", "7"], "--window must be even, not 7"),
        (["--window", "8", "--matches", "9"], "above 0 and at most --window (8), not 9"),
        (["--matches", "nan"], "above 0 and at most --window (4096), not nan"),
    ],
)
def test_a_number_that_makes_no_sense_is_an_error(capsys, words, said):
    assert main(["matches", *words]) == 2
    assert said in capsys.readouterr().err
