# SPDX-License-Identifier: Apache-2.0
"""Joins by way of Spark Connect: a client without a Spark context, in an empty folder."""

import pytest

from tests.spark_offload.oracle import join_rows
from tests.spark_offload.other_operations import expected_rows
from tests.spark_offload.test_local_cluster import ROOT, run_job

REASON = "the packages of the extra `connect` are not installed"

# A server of its own, a dozen jobs and a stream: minutes where the machine is busy.
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def answer(tmp_path_factory, simulated_bundle):
    """What the job printed."""
    for package in ("grpc", "grpc_status", "google.rpc", "zstandard"):
        pytest.importorskip(package, reason=REASON)
    empty, data = tmp_path_factory.mktemp("empty"), tmp_path_factory.mktemp("data")
    found = run_job(
        empty,
        simulated_bundle,
        str(data),
        str(ROOT / "docs" / "spark-cluster.md"),
        job="connect_job.py",
        seconds=580,
    )
    assert not [path for path in empty.iterdir() if path.name not in ("artifacts", "work")]
    return found


def test_batch_joins_have_the_same_rows(answer):
    left = [{"t": t, "k": t % 7, "x": t % 10} for t in range(0, 400, 2)]
    right = [{"t": t, "k": t % 7, "x": t % 9} for t in range(1, 400, 2)]

    def near(l, r):
        return abs(l["x"] - r["x"]) <= 2

    timed = join_rows(
        left, right, lambda l, r: l["k"] == r["k"] and near(l, r), time="t", within=30
    )
    counted = join_rows(left, right, lambda l, r: l["k"] == r["k"], time="t", rows=9)
    ranges = join_rows(left, right, near, time="t", within=30)
    assert [tuple(row) for row in answer["timed"]] == sorted(timed)
    assert [tuple(row) for row in answer["counted"]] == counted
    assert [tuple(row) for row in answer["ranges"]] == ranges


def test_other_joins_and_aggregates_have_the_same_rows(answer):
    assert answer["operations"] == expected_rows()


def test_streams_are_joined_with_the_closest_time(answer):
    stream = answer["asof_stream"]
    # The last second has no watermark behind it.
    found = [l for l, _ in stream["pairs"]]
    assert found == list(range(len(found)))
    assert 90 <= len(found) < 100
    assert stream["pairs"] == [[l, l - 3 if l >= 3 else None] for l in found]
    assert stream["results"] == len(found)
    assert stream["stored"] == 200


def test_executors_import_the_artifacts(answer):
    for file in answer["files"]:
        assert ".zip" in file
        assert not file.startswith(str(ROOT))


def test_what_connect_does_not_tell_is_said(answer):
    assert answer["partitions"] == 2
    assert "one for each core" in answer["timed_partitioning"]
    assert "Spark tells no sizes here" in answer["partitioning"]
    assert "Spark Connect has no accumulators" in answer["metrics"]
    assert "it was not checked" in answer["stream"]["watermark"]


def test_errors_of_tasks_are_told(answer):
    assert answer["error"].startswith("OrderError: Order column 'left.t' is null")


def test_streams_carry_what_their_tasks_need(answer):
    stream = answer["stream"]
    assert stream["pairs"] == [
        [l, r] for l in range(100) for r in range(100) if l % 3 == r % 3 and abs(l - r) <= 7
    ]
    assert stream["results"] == len(stream["pairs"])
    assert stream["cycles"] > 0


def test_the_code_of_the_page_runs(answer):
    assert answer["page"] == 1
