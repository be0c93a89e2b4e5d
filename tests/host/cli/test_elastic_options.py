# SPDX-License-Identifier: Apache-2.0
"""The options of an elastic join on the command line."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from host.__main__ import main
from tests.host.tables import bundle


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("elastic")
    device = bundle(folder / "bundle", cores=3, sub_window=40, keys=("x16",), timestamp_bits=20)
    rng = np.random.default_rng(3)
    for name in ("left", "right"):
        times = np.sort(rng.integers(0, 900, 200))
        rows = pa.table({"t": times, "x": rng.integers(0, 9, 200)})
        pq.write_table(rows, folder / f"{name}.parquet")
    return [
        "join", "--left", str(folder / "left.parquet"), "--right", str(folder / "right.parquet"),
        "--time", "t", "--on", "x", "--within", "9", "--device", f"software:{device}",
        "--output", str(folder / "out.csv"),
    ]  # fmt: skip


@pytest.mark.parametrize("more", [["--verify"], ["--sorted"]])
def test_an_elastic_join_says_what_it_decided(base, tmp_path, capsys, more):
    log = tmp_path / "log"
    assert main([*base, "--elastic", "--elastic-log", str(log), *more]) == 0
    shown = capsys.readouterr().err
    assert "elastic: threshold 90/70/45 %: 3 cores, no observation was completed" in shown
    assert log.read_text() == ""
    assert main([*base, *more]) == 0
    assert "elastic:" not in capsys.readouterr().err


def test_changes_are_replayed(base, tmp_path, capsys):
    log = tmp_path / "log"
    log.write_text('{"cycle": 1, "tuples": 50, "cores": [1, 0]}\n')
    assert main([*base, "--verify", "--elastic", f"replay:{log}"]) == 0
    log.write_text('{"cycle": 1, "tuples": 50, "cores": [7]}\n')
    assert main([*base, "--elastic", f"replay:{log}"]) != 0
    assert "7" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--elastic", "quick"], "takes threshold, predictive, energy or replay:FILE"),
        (["--elastic", "energy"], "needs --latency"),
        (["--latency", "5"], "--latency is for --elastic energy"),
        (["--elastic", "energy", "--latency", "0"], "--latency takes a whole number of at least 1"),
        (["--elastic-log", "x"], "--elastic-log is for a join with --elastic"),
        (["--elastic", "replay:/nowhere"], "'/nowhere' cannot be read"),
        (["--pace", "0"], "must be above 0"),
        (["--pace", "5"], "has no clock, so its input cannot have a pace"),
    ],
)
def test_options_that_make_no_sense_are_refused(base, capsys, more, message):
    assert main([*base, *more]) == 2
    assert message in capsys.readouterr().err


def test_options_are_refused_before_a_device_is_opened(base, tmp_path, capsys):
    nowhere = ["--device", f"software:{tmp_path / 'nowhere'}"]
    assert main([*base, *nowhere, "--pace", "0"]) == 2
    assert "must be above 0" in capsys.readouterr().err
    assert main([*base, *nowhere, "--elastic", "replay:/nowhere"]) == 2
    assert "'/nowhere' cannot be read" in capsys.readouterr().err
