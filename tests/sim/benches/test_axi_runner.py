# SPDX-License-Identifier: Apache-2.0
"""One small configuration of the AXI shell's bench; `make sim` runs more."""

from hdl.parameters import JoinParameters, KeyField
from sim.benches.axi_runner import run_axi_bench

SMALL = JoinParameters(cores=1, sub_window=4, keys=(KeyField(name="x", bits=6),), timestamp_bits=9)


def test_the_generated_shell_joins_under_cocotb_and_is_as_fast_as_stated(tmp_path):
    measured = run_axi_bench(SMALL, name="test", seed=5, tuples=12, folder=tmp_path)
    assert measured == {"in": 1, "out": 1, "before": 1, "behind": 1}
