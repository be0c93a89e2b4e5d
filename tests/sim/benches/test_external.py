# SPDX-License-Identifier: Apache-2.0
"""Windows in external memory under cocotb, with the memories of cocotbext-axi."""

import pytest

from hdl.parameters import JoinParameters, KeyField
from sim.benches.runner import run_bench

MEMORIES = "tests.sim.benches.axi_rams:attach"
SMALL = JoinParameters.of(
    cores=1, sub_window=8, keys=(KeyField(name="x", bits=6),), timestamp_bits=9, probes=2,
    store="external", memory_width=8, memory_burst=2, memory_latency=20,
)  # fmt: skip
SEVERAL = JoinParameters.of(
    cores=2, sub_window=40, keys=(KeyField(name="x", bits=8), KeyField(name="y", bits=16)),
    lanes=5, probes=4, result_streams=2, fan_in=2, fan_out=2,
    store="external", memory_width=128, memory_burst=1, memory_latency=40,
)  # fmt: skip


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("parameters", [SMALL, SEVERAL], ids=["small", "several"])
def test_the_generated_verilog_joins_over_memories_of_cocotbext_axi(parameters, tmp_path, capfd):
    run_bench(parameters, name="external", seed=5, tuples=20, folder=tmp_path, memories=MEMORIES)
    assert "scenarios passed, " in capfd.readouterr().out


def test_a_bench_of_external_windows_needs_memories():
    with pytest.raises(ValueError, match="has windows in external memory; give 'memories'"):
        run_bench(SMALL, name="external", tuples=1)
