# SPDX-License-Identifier: Apache-2.0
"""Accelerators that commands build for a condition, a query or an operator, cycle by cycle."""

from pathlib import Path
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from host.__main__ import main

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files of rows with nulls, and an empty cache."""
    pytest.importorskip("sim.verilated.library")
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path / "cache"))
    places = []
    for side in ("left", "right"):
        rng = random.Random(side)
        rows = [
            {
                "t": time,
                "k": rng.choice([None, 1, 2, 3]),
                "name": rng.choice("abc"),
                "x": rng.choice([None, *range(-9, 9)]),
            }
            for time in sorted(rng.randrange(400) for _ in range(200))
        ]
        places.append(str(tmp_path / f"{side}.parquet"))
        pq.write_table(pa.Table.from_pylist(rows), places[-1])
    return places


@pytest.mark.long
def test_a_join_has_an_accelerator_for_its_condition(files, tmp_path, capsys):
    left, right = files
    where = "l.x * r.x > 20 and l.name != r.name and r.name != 'c'"
    options = ["join", "--left", left, "--right", right, "--time", "t", "--within", "40"]
    options += ["--where", where, "--output", str(tmp_path / "out.parquet")]
    options += ["--device", "sim:", "--build", "--verify", "--explain"]
    assert main(options) == 0
    said = capsys.readouterr()
    own = "(l.f1 * r.f1 > 20) & (l.f0 != r.f0)"
    assert f"Building an accelerator that finds pairs with {own}, once, in" in said.err
    assert f"it finds {own}" in said.out
    assert "agree with the reference join" in said.err
    assert main(options) == 0
    assert "Building" not in capsys.readouterr().err


@pytest.mark.long
def test_an_aggregation_has_an_accelerator_for_its_keys_and_aggregates(files, tmp_path, capsys):
    options = ["aggregate", "--input", files[0], "--time", "t", "--window", "40", "--advance", "10"]
    options += ["--on", "k", "--on", "name", "--output", str(tmp_path / "out.parquet")]
    for text in ("n=count", "mean=mean:x", "low=min:x", "high=max:x", "xs=count:x"):
        options += ["--aggregate", text]
    assert main([*options, "--device", "sim:", "--verify"]) == 0
    said = capsys.readouterr().err
    assert "Building an accelerator for operator 'query', once, in" in said
    assert "results agree with the reference operator" in said
    assert "cycles of sim:, " in said


@pytest.mark.long
def test_an_operator_has_an_accelerator_of_its_own(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sim.verilated.library")
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path / "cache"))
    rng = random.Random(1)
    clicks = pa.table(
        {
            "timestamp": sorted(rng.randrange(900) for _ in range(200)),
            "user": [rng.randrange(8) for _ in range(200)],
            "bytes": [rng.randrange(50) for _ in range(200)],
        }
    )
    pq.write_table(clicks, tmp_path / "clicks.parquet")
    options = [
        "operate",
        str(EXAMPLES / "sessions.py"),
        "--input",
        str(tmp_path / "clicks.parquet"),
    ]
    options += ["--output", str(tmp_path / "out.parquet"), "--device", "sim:", "--verify"]
    assert main(options) == 0
    said = capsys.readouterr().err
    assert "Building an accelerator for operator 'sessions', once, in" in said
    assert "results agree with the reference operator" in said
    assert "cycles of sim:, " in said
