# SPDX-License-Identifier: Apache-2.0
"""The smallest accelerator on a board, built once for all tests of this folder."""

from pathlib import Path

import pytest

from hdl.boards.table import find_board
from hdl.bundle import write_bundle
from hdl.presets import PRESETS
from sim.board.board import SimulatedBoard
from sim.board.library import build_board


@pytest.fixture(scope="package")
def found():
    return find_board("ulx3s-12f")


@pytest.fixture(scope="package")
def parameters():
    return PRESETS["board-small"]


@pytest.fixture(scope="package")
def bundle(tmp_path_factory, parameters):
    folder = Path(tmp_path_factory.mktemp("board")) / "bundle"
    write_bundle(parameters, folder)
    return folder


@pytest.fixture(scope="package")
def library(bundle, found, parameters):
    digest = write_bundle(parameters, bundle)["hash"]
    return build_board(found, parameters, digest=digest)


@pytest.fixture
def board(library):
    simulated = SimulatedBoard(library, seed=1)
    yield simulated
    simulated.close()
