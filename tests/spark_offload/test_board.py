# SPDX-License-Identifier: Apache-2.0
"""A join of Spark on the circuit of a board, by the addresses that a real board has."""

import pytest

from hdl.boards.table import find_board
from hdl.bundle import write_bundle
from hdl.presets import PRESETS
from host.errors import MissingToolError
from sim.board.board import SimulatedBoard
from sim.board.library import build_board
from sim.board.ports import PseudoTerminal, TcpPort
from sim.board.server import serving
from spark_offload import metrics, stream_join
from tests.spark_offload.oracle import join_rows
from tests.spark_offload.test_join import collected, frames, random_rows

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
]  # Spark starts, beside a simulation

LEFT, RIGHT = random_rows(5, 90, span=120), random_rows(6, 80, span=120)


def matches(left, right):
    return left["k"] == right["k"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    board, parameters = find_board("ulx3s-12f"), PRESETS["board-small"]
    folder = tmp_path_factory.mktemp("board") / "bundle"
    digest = write_bundle(parameters, folder)["hash"]
    try:
        return build_board(board, parameters, digest=digest), folder
    except MissingToolError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["serial", "tcp"])
def port(request, tmp_path):
    return TcpPort() if request.param == "tcp" else PseudoTerminal(tmp_path / "tty")


@pytest.fixture
def address(built, port):
    """The address of a board that is served meanwhile, with a byte in a thousand damaged."""
    library, folder = built
    board = SimulatedBoard(library, seed=1)
    with serving(board, port, damage=0.001):
        yield f"{port.place}?baud=38400&bundle={folder}&reconnect=60"
    board.close()


def test_a_join_of_spark_runs_on_a_board(spark, address):
    joined = stream_join(
        *frames(spark, LEFT, RIGHT), on="k", order="t", rows=33, device=address, partitions=1
    )
    assert collected(joined) == join_rows(LEFT, RIGHT, matches, order="t", rows=33)
    assert {task.device for task in metrics(joined).tasks} == {address}
    assert metrics(joined).counters()["tuples_r"] == len(LEFT)
