# SPDX-License-Identifier: Apache-2.0
"""A cluster of two processes, started from an empty folder: executors get all they need."""

import json
import os
from pathlib import Path
import subprocess
import sys

import pytest

from tests.spark_offload.oracle import join_rows
from tests.spark_offload.other_operations import expected_rows

ROOT = Path(__file__).resolve().parents[2]

# The repository is on the path of the driver alone: not in PYTHONPATH, which executors inherit.
START = """
import runpy, sys
root, script = sys.argv[1:3]
sys.path.insert(0, root)
sys.argv = sys.argv[2:]
runpy.run_path(script, run_name="__main__")
"""


def run_job(folder, *arguments, job="cluster_job.py", seconds=280):
    script = Path(__file__).with_name(job)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    }
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            START,
            str(ROOT),
            str(script),
            *arguments,
        ],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def check(answer):
    left = [{"t": t, "k": t % 7, "x": t % 10} for t in range(0, 400, 2)]
    right = [{"t": t, "k": t % 7, "x": t % 9} for t in range(1, 400, 2)]
    timed = join_rows(
        left,
        right,
        lambda l, r: l["k"] == r["k"] and abs(l["x"] - r["x"]) <= 2,
        time="t",
        within=30,
    )
    counted = join_rows(left, right, lambda l, r: l["k"] == r["k"], time="t", rows=9)
    assert [tuple(row) for row in answer["timed"]] == sorted(timed)
    assert [tuple(row) for row in answer["counted"]] == counted
    assert answer["results"] == len(timed)
    assert answer["partitions"] == 4
    assert answer["operations"] == expected_rows()
    for file in answer["files"]:
        assert ".zip" in file, "executors import what was shipped to them"
        assert not file.startswith(str(ROOT))


@pytest.mark.long
@pytest.mark.timeout(600)
def test_executors_of_a_cluster_need_nothing_but_what_is_shipped(tmp_path, simulated_bundle):
    check(run_job(tmp_path, simulated_bundle, seconds=580))
    assert not [path for path in tmp_path.iterdir() if path.name != "work"]


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("lost", [0, 1])
def test_a_streaming_join_needs_no_more_either(tmp_path, simulated_bundle, lost):
    """And where executors are lost in the middle of a micro-batch, no pair is lost or repeated."""
    pytest.importorskip("google.protobuf", reason="Spark's state store is spoken to by protobuf")
    empty, data = tmp_path / "empty", tmp_path / "data"
    empty.mkdir()
    data.mkdir()
    arguments = (simulated_bundle, str(data), str(lost))
    answer = run_job(empty, *arguments, job="stream_cluster_job.py", seconds=580)
    assert answer["pairs"] == [
        [l, r] for l in range(100) for r in range(100) if l % 3 == r % 3 and abs(l - r) <= 7
    ]
    assert answer["losses left"] == 0
    assert answer["cycles"] > 0
    assert not [path for path in empty.iterdir() if path.name != "work"]


# Three joins, one of which fails twice and is run again: minutes where the machine is busy.
@pytest.mark.long
@pytest.mark.timeout(600)
def test_devices_come_from_spark_or_from_a_pool_and_a_retry_gets_another_one(tmp_path):
    empty, data = tmp_path / "empty", tmp_path / "data"
    empty.mkdir()
    data.mkdir()
    answer = run_job(empty, str(data), job="device_cluster_job.py", seconds=580)
    expected = [[l, k, r, k] for l, r, k in pairs_of_a_hundred_and_one()]
    assert [join["pairs"] for join in answer.values()] == [expected] * 3
    own, assigned, pool = answer["own"], answer["resource"], answer["pool"]
    assert "each task makes one of its own" in own["chosen"]
    assert (own["attempts"], own["devices"]) == ([0] * 4, ["software:"] * 4)
    assert "Spark assigns each task one of its resource 'card'" in assigned["chosen"]
    assert assigned["attempts"] == [0] * 4
    assert set(assigned["devices"]) <= {"first", "second"}
    # Each of the two bad devices has failed one task, whose retry went on to another one.
    assert pool["devices"] == ["c"] * 4
    assert sum(pool["attempts"]) == 2


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2])
def test_tasks_that_fail_once_change_no_answer_however_the_work_is_divided(tmp_path, seed):
    answers = run_job(tmp_path, str(seed), "8", job="retry_job.py", seconds=580)
    assert len(answers) == 8
    for answer in answers:
        query = answer["query"]
        low, high = query.get("band", {"x": (-99, 99)})["x"]

        def holds(l, r, query=query, low=low, high=high):
            return ("on" not in query or l["k"] == r["k"]) and low <= l["x"] - r["x"] <= high

        window = {name: query[name] for name in ("within", "rows") if name in query}
        expected = join_rows(*answer["sides"], holds, time="t", **window)
        assert sorted(map(tuple, answer["rows"])) == sorted(expected), query
    assert any(max(answer["attempts"]) for answer in answers), "some tasks were run again"


def pairs_of_a_hundred_and_one():
    """Return left and right time and key of the pairs that device_cluster_job.py asks for."""
    times = range(0, 4000, 2), range(1, 4000, 2)
    rights = {}
    for time in times[1]:
        rights.setdefault(time % 101, []).append(time)
    pairs = [(l, r, l % 101) for l in times[0] for r in rights[l % 101] if abs(l - r) <= 999]
    return sorted(pairs, key=lambda pair: (pair[0], pair[2], pair[1]))
