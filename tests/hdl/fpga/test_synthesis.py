# SPDX-License-Identifier: Apache-2.0
"""What synthesis leaves apart."""

from fnmatch import fnmatch
import re

import pytest

from hdl.accelerator import Accelerator
from hdl.fpga.devices import find_device
from hdl.fpga.synthesis import KEEP
from hdl.parameters import JoinParameters
from hdl.verilog.conversion import to_verilog

MODULE = re.compile(r"^module (\w+)\(.*?^endmodule", re.MULTILINE | re.DOTALL)


@pytest.mark.long
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"cores": 2, "probes": 2, "lanes": 2}, marks=pytest.mark.long),
        pytest.param({"cores": 1, "engine": "index", "tuples_per_word": 2}, marks=pytest.mark.long),
        {"cores": 2, "probes": 2, "lanes": 2, "result_streams": 2},
    ],
)
def test_every_component_with_a_reset_of_its_own_is_left_apart(changes):
    """Otherwise the registers of its reset would be merged with those of its neighbours."""
    parameters = JoinParameters.of(sub_window=32, fan_in=2, fan_out=2, **changes)
    verilog = to_verilog(Accelerator(parameters), platform=find_device("lfe5u-85f"))
    bodies = {match[1]: match[0] for match in MODULE.finditer(verilog)}
    own = {
        name for name, body in bodies.items() if "reset_stages" in body or name.startswith("late_")
    }
    end = "order_queue" if parameters.engine.result_streams == 1 else "side_exit"
    assert {"ingress", end} < own
    apart = {name for name in bodies if any(fnmatch(name, pattern) for pattern in KEEP)}
    assert own <= apart
