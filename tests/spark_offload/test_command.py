# SPDX-License-Identifier: Apache-2.0
"""``python -m spark_offload``: files in, one file out, in order; or one line that says why not."""

import json
from pathlib import Path
import subprocess
import sys

import pyarrow as pa
from pyarrow import csv
import pyarrow.parquet as pq
import pytest

from spark_offload.__main__ import main

ROOT = Path(__file__).resolve().parents[2]

TRADES = {"t": [4, 1, 9, 4], "k": ["b", "a", "a", None], "x": pa.array([7, 5, 3, 1], pa.uint32())}
QUOTES = {"time": [2, 4, 11], "k": ["a", "b", "a"], "y": [1.5, 2.5, 3.5]}
FLAGS = ["--order", "t:time", "--equal", "k:k", "--within", "8", "--device", "software:"]
EXPECTED = [
    {"t": 1, "k": "a", "x": 5, "time": 2, "k_right": "a", "y": 1.5},
    {"t": 4, "k": "b", "x": 7, "time": 4, "k_right": "b", "y": 2.5},
    {"t": 9, "k": "a", "x": 3, "time": 2, "k_right": "a", "y": 1.5},
    {"t": 9, "k": "a", "x": 3, "time": 11, "k_right": "a", "y": 3.5},
]


@pytest.fixture
def files(tmp_path):
    """Two input files, and a place for the output."""
    pq.write_table(pa.table(TRADES), tmp_path / "trades.parquet")
    csv.write_csv(pa.table(QUOTES), tmp_path / "quotes.csv")
    return [
        "--left", str(tmp_path / "trades.parquet"),
        "--right", str(tmp_path / "quotes.csv"),
        "--output", str(tmp_path / "out.parquet"),
    ]  # fmt: skip


def test_join_writes_one_file_in_the_order_of_arrival(spark, files, tmp_path, capsys):
    assert main(["join", *files, *FLAGS, "--verify", "--explain"]) == 0
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.to_pylist() == EXPECTED
    assert table.schema.field("x").type == pa.uint32(), "the types are those of the input"
    printed = capsys.readouterr()
    assert "all 4 results agree with the reference join" in printed.err
    assert "by the equal columns k" in printed.out
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "out.parquet", "quotes.csv", "trades.parquet",
    ]  # fmt: skip


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_output_formats(spark, files, tmp_path, ending):
    files[-1] = str(tmp_path / f"out.{ending}")
    assert main(["join", *files, *FLAGS]) == 0
    lines = (tmp_path / f"out.{ending}").read_text().splitlines()
    if ending == "json":
        assert [json.loads(line) for line in lines] == EXPECTED
    else:
        assert lines[1] == '1,"a",5,2,"a",1.5'
        assert len(lines) == 5


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (["--order", "t:when"], 2, ["'when'", "right"]),
        (["--equal", "x:k"], 2, ["'left.x'", "'right.k'"]),
        (["--equal", "k:y"], 2, ["'right.y'", "double"]),
        (["--within", "5 parsecs"], 2, ["5 parsecs"]),
        (["--sorted"], 2, ["left.t", "row 1", "sort"]),
        (["--left", "nowhere.csv"], 2, ["nowhere.csv"]),
        (["--output", "out.xlsx"], 2, ["out.xlsx", ".parquet"]),
        (["--output", "no/such/folder/out.csv"], 2, ["no/such/folder"]),
        (["--device", "sim:/nowhere"], 2, ["/nowhere", "python -m sim build"]),
    ],
)
def test_bad_input_is_one_line_and_no_file(spark, files, tmp_path, capsys, change, code, words):
    assert main(["join", *files, *FLAGS, *change]) == code
    message = capsys.readouterr().err
    assert message.startswith("python -m spark_offload join: ")
    assert len(message.splitlines()) == 1
    assert [word for word in words if word not in message] == []
    assert not (tmp_path / "out.parquet").exists()


def test_an_error_inside_an_executor_is_one_line_too(
    spark, files, tmp_path, capsys, software_bundle
):
    rows = pa.table({"t": list(range(100))})
    for name in ("a", "b"):
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    code = main(
        [
            "join",
            "--left",
            str(tmp_path / "a.parquet"),
            "--right",
            str(tmp_path / "b.parquet"),
            "--order",
            "t",
            "--within",
            "90",
            "--device",
            software_bundle,
            *files[-2:],
        ]
    )
    message = capsys.readouterr().err
    assert code == 1
    assert "outgrew the capacity of 64" in message
    assert "Traceback" not in message
    assert len(message.splitlines()) == 1
    assert not (tmp_path / "out.parquet").exists()


def test_times_finer_than_spark_has_are_refused(spark, files, tmp_path, capsys):
    rows = pa.table({"t": pa.array([1_001], pa.timestamp("ns"))})
    pq.write_table(rows, tmp_path / "trades.parquet")
    code = main(["join", *files, "--order", "t:t", "--within", "1s", "--right", files[1]])
    assert code == 2
    assert "'t'" in capsys.readouterr().err


def test_a_process_of_its_own_is_quiet(files, tmp_path):
    """No log noise, no environment set by hand, nothing but the result."""
    done = subprocess.run(
        [sys.executable, "-m", "spark_offload", "join", *files, *FLAGS],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == EXPECTED


def test_an_unknown_command_is_wrong_usage(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["jion"])
    assert caught.value.code == 2
    assert "jion" in capsys.readouterr().err
