# SPDX-License-Identifier: Apache-2.0
"""The demo, small: it compares row for row, prints its table and writes its report."""

import pyarrow.parquet as pq
import pytest

from spark_offload.__main__ import main
from spark_offload.cli.demo import Benchmark


@pytest.mark.parametrize("window", ["--window", pytest.param("--rows", marks=pytest.mark.long)])
def test_benchmark_agrees_with_sparks_own_join(spark, simulated_bundle, tmp_path, capsys, window):
    report = tmp_path / "report.html"
    code = main(
        [
            *("demo", "--tuples", "3000", window, "150", "--device", simulated_bundle),
            *("--report", str(report), "--output", str(tmp_path / "pairs.parquet")),
        ]
    )
    printed = capsys.readouterr()
    assert code == 0, printed.err
    assert "agree with Spark's own join, in order" in printed.out
    for name in (
        "Simulated cycles",
        "Cycles per tuple",
        "Cycle efficiency",
        "Latency, median",
        "software engine",
        "By the cost model, ECP5-85F, scan ",
    ):
        assert name in printed.out
    assert report.read_text().count("<svg") == 4
    assert 0 < pq.read_table(tmp_path / "pairs.parquet").num_rows < 100


@pytest.mark.few(1)
@pytest.mark.parametrize("verify", [True, False])
def test_demo_of_files_takes_the_options_of_join(spark, simulated_bundle, tmp_path, capsys, verify):
    for name, table in zip(("left", "right"), Benchmark(rows=200).tables(), strict=True):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    code = main(
        [
            *("demo", "--left", str(tmp_path / "left.parquet")),
            *("--right", str(tmp_path / "right.parquet"), "--time", "t"),
            *("--band", "x:x:-500:500", "--within", "80", "--device", simulated_bundle),
            *("--output", str(tmp_path / "out.csv"), "--report", str(tmp_path / "report.html")),
            *(["--verify"] if verify else []),
        ]
    )
    printed = capsys.readouterr()
    assert code == 0, printed.err
    assert ("agree with Spark's own join" in printed.out) == verify
    assert ("Latency, median" in printed.out) == verify
    assert "Simulated cycles" in printed.out
    assert (tmp_path / "out.csv").is_file()
    assert (tmp_path / "report.html").is_file()


def test_a_size_of_zero_is_wrong_usage(capsys):
    assert main(["demo", "--tuples", "0"]) == 2
    assert "--tuples must be at least 1" in capsys.readouterr().err


def test_places_that_cannot_be_written_are_noticed_first(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("spark_offload.cli.demo.open_session", None)
    (tmp_path / "file").touch()
    for option, place, words in (
        ("--output", tmp_path / "none" / "out.csv", "does not exist"),
        ("--output", tmp_path / "out.xlsx", "must end in"),
        ("--report", tmp_path / "file" / "report.html", "cannot be made"),
        ("--report", tmp_path, "is a folder"),
    ):
        assert main(["demo", option, str(place)]) == 2
        assert words in capsys.readouterr().err
