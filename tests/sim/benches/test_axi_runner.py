# SPDX-License-Identifier: Apache-2.0
"""One small configuration of the AXI shell's bench; `make sim` runs more."""

import pytest

from hdl.parameters import JoinParameters, KeyField
from hdl.shells.axi_options import AxiOptions
from sim.benches.axi_runner import run_axi_bench

SMALL = JoinParameters(cores=1, sub_window=4, keys=(KeyField(name="x", bits=6),), timestamp_bits=9)


@pytest.mark.long
@pytest.mark.parametrize("inputs", [1, 2])
def test_the_generated_shell_joins_under_cocotb_and_is_as_fast_as_stated(tmp_path, inputs):
    options = AxiOptions(inputs=inputs)
    measured = run_axi_bench(
        SMALL, name="test", options=options, seed=5, tuples=12, folder=tmp_path
    )
    assert 0.99 < measured.pop("in") <= 1
    assert measured == {"out": 1, "before": 1 if inputs == 1 else 4, "behind": 1}
