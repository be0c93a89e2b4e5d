# SPDX-License-Identifier: Apache-2.0
"""A cluster to whose executors Spark assigns boards, which answer by their links."""

import pytest

from hdl.presets import PRESETS
from tests.host.link.software_board import TcpDoor, UdpDoor, serve
from tests.host.small_bundles import write_manifest
from tests.spark_offload.oracle import join_rows
from tests.spark_offload.test_local_cluster import run_job

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def test_spark_assigns_boards_to_the_tasks_of_a_cluster(tmp_path):
    """Two executors have a board each, one behind TCP, the other one behind UDP."""
    bundle = write_manifest(PRESETS["board-small"], tmp_path / "bundle")
    empty = tmp_path / "empty"
    empty.mkdir()
    with serve(bundle, door=TcpDoor()) as first, serve(bundle, door=UdpDoor()) as second:
        addresses = [
            f"{scheme}:127.0.0.1:{board.port}?bundle={bundle}&reconnect=60"
            for scheme, board in (("tcp", first), ("udp", second))
        ]
        answer = run_job(empty, str(tmp_path), *addresses, job="board_cluster_job.py", seconds=400)
    left, right = ([{"t": t, "k": t % 7} for t in range(n, 160, 2)] for n in range(2))
    pairs = join_rows(left, right, lambda l, r: l["k"] == r["k"], order="t", rows=9)
    assert answer["pairs"] == sorted(map(list, pairs))
    assert "Spark assigns each task one of its resource 'board'" in answer["chosen"]
    assert answer["devices"]
    assert set(answer["devices"]) <= set(addresses)
    assert set(answer["attempts"]) == {0}
