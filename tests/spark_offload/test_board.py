# SPDX-License-Identifier: Apache-2.0
"""A join of Spark on the circuit of a board, by the addresses that a real board has."""

from contextlib import ExitStack, closing

import pytest

from hdl.boards.table import find_board
from hdl.bundle import write_bundle
from hdl.presets import PRESETS
from host.errors import MissingToolError
from sim.board.board import SimulatedBoard
from sim.board.ethernet_board import SimulatedEthernetBoard
from sim.board.library import build_board
from sim.board.ports import PseudoTerminal, TcpPort
from sim.board.server import running, serving
from sim.board.udp_server import UdpServer
from spark_offload import metrics, stream_join
from tests.spark_offload.oracle import join_rows
from tests.spark_offload.test_join import collected, frames, random_rows
from tests.spark_offload.test_local_cluster import run_job

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
]  # Spark starts, beside a simulation

LEFT, RIGHT = random_rows(5, 90, span=120), random_rows(6, 80, span=120)


def matches(left, right):
    return left["k"] == right["k"]


#: Boards by the kinds of their addresses.
BOARDS = {"serial": "ulx3s-12f", "tcp": "ulx3s-12f", "udp": "ecpix5-45f"}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """The bundle of all boards, and its hash."""
    folder = tmp_path_factory.mktemp("board") / "bundle"
    return folder, write_bundle(PRESETS["board-small"], folder)["hash"]


@pytest.fixture
def serve(bundle, tmp_path):
    """Return a function that serves a board by a kind of address, and returns the address.

    A byte in a thousand is damaged, or a frame.
    """
    folder, digest = bundle
    with ExitStack() as stack:

        def serve(kind):
            board = find_board(BOARDS[kind])
            try:
                library = build_board(board, PRESETS["board-small"], digest=digest)
            except MissingToolError as error:
                pytest.skip(str(error))
            if kind == "udp":
                simulated = SimulatedEthernetBoard(library, seed=1)
                stack.enter_context(closing(simulated))
                port = UdpServer(simulated, board, damage=0.001)
                stack.enter_context(running(port))
            else:
                simulated = SimulatedBoard(library, seed=1)
                stack.enter_context(closing(simulated))
                port = TcpPort() if kind == "tcp" else PseudoTerminal(tmp_path / "tty")
                stack.enter_context(serving(simulated, port, damage=0.001))
            return f"{port.place}?baud=38400&bundle={folder}&reconnect=60"

        yield serve


@pytest.mark.parametrize("kind", list(BOARDS))
def test_a_join_of_spark_runs_on_a_board(spark, serve, kind):
    address = serve(kind)
    joined = stream_join(
        *frames(spark, LEFT, RIGHT), on="k", time="t", rows=33, device=address, partitions=1
    )
    assert collected(joined) == join_rows(LEFT, RIGHT, matches, time="t", rows=33)
    assert {task.device for task in metrics(joined).tasks} == {address}
    assert metrics(joined).counters()["tuples_r"] == len(LEFT)


def test_tasks_join_on_the_boards_that_spark_assigns(serve, tmp_path):
    empty, data = tmp_path / "empty", tmp_path / "data"
    empty.mkdir()
    data.mkdir()
    boards = [serve("tcp"), serve("tcp")]
    answer = run_job(empty, str(data), *boards, job="board_cluster_job.py", seconds=800)
    left = [{"t": t, "k": t % 11} for t in range(0, 160, 2)]
    right = [{"t": t, "k": t % 11} for t in range(1, 160, 2)]
    expected = sorted(join_rows(left, right, matches, time="t", rows=30))
    assert list(map(tuple, answer["pairs"])) == expected
    assert set(answer["devices"]) <= set(boards)
    assert answer["tuples_r"] >= len(left), "the boards have counted the tuples"
