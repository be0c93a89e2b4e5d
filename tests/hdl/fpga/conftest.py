# SPDX-License-Identifier: Apache-2.0
import fcntl

import pytest

from hdl.fpga.shell import SHELL, RoutingShell
from hdl.presets import PRESETS
from hdl.verilog.conversion import to_verilog
from tests.conftest import shared_by_workers


@pytest.fixture(scope="session")
def routed_verilog(tmp_path_factory):
    """Verilog of a small accelerator as it is routed; one worker makes it for all."""
    path = shared_by_workers(tmp_path_factory) / "routed.v"
    with path.with_suffix(".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the system unlocks it when it is closed
        if not path.exists():
            text = to_verilog(RoutingShell(PRESETS["tiny"].with_(cores=1)), name=SHELL)
            path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8")
