# SPDX-License-Identifier: Apache-2.0
"""The kit and its peers answer each question alike, and as Python does."""

import pyarrow.parquet as pq
import pytest

from bench.peers import kit
from bench.peers.workload import Workload


@pytest.fixture(scope="module", params=[40, 4], ids=["wide window", "cut by time"])
def workload(request, tmp_path_factory):
    folder, within = tmp_path_factory.mktemp("peers"), request.param
    made = Workload(folder, rows=300, within=within, reach=1_500, keys=20)
    assert made.is_long == (within == 4)
    made.write()
    return made


def expected(workload, question):
    """Return the pairs of times of the answer."""
    left, right = (pq.read_table(path).to_pylist() for path in (workload.left, workload.right))
    pairs = {
        "band": lambda r, s: max(abs(r["x"] - s["rx"]), abs(r["y"] - s["ry"])) <= workload.reach,
        "equality": lambda r, s: r["k"] == s["rk"],
        "asof": lambda r, s: r["k"] == s["rk"] and s["rt"] <= r["t"],
    }[question]
    near = [
        (r["t"], s["rt"])
        for r in left
        for s in right
        if abs(r["t"] - s["rt"]) <= workload.within and pairs(r, s)
    ]
    return sorted(dict(near).items()) if question == "asof" else sorted(near)


def times(path):
    table = pq.read_table(path)
    assert table.column_names == ["t", "k", "x", "y", "rt", "rk", "rx", "ry"]
    return sorted(zip(table["t"].to_pylist(), table["rt"].to_pylist(), strict=True))


@pytest.mark.parametrize("question", ["band", "equality", "asof"])
def test_a_command_has_the_answer(workload, tmp_path, question):
    getattr(kit, question)(workload, "software:", tmp_path / "out.parquet")
    wanted = expected(workload, question)
    assert len(wanted) > 50
    assert times(tmp_path / "out.parquet") == wanted


def test_a_command_that_fails_is_an_error(workload, tmp_path):
    with pytest.raises(RuntimeError, match="host join ended with code 2: .*nothing:"):
        kit.band(workload, "nothing:", tmp_path / "out.parquet")


@pytest.mark.parametrize(
    ("module", "question"),
    [
        ("duckdb", "band"),
        ("duckdb", "equality"),
        ("duckdb", "asof"),
        ("polars", "equality"),
        ("polars", "asof"),
    ],
)
def test_a_peer_has_the_answer(workload, tmp_path, module, question):
    pytest.importorskip(module, reason="needs make bench-peers, or make setup-fpga")
    queries = pytest.importorskip(f"bench.peers.{module}_queries")
    getattr(queries, question)(workload, tmp_path / "out.parquet")
    assert times(tmp_path / "out.parquet") == expected(workload, question)
