# SPDX-License-Identifier: Apache-2.0
"""One small configuration of the cocotb benches; `make sim` runs them all."""

import pytest

from hdl.presets import PRESETS
from host.errors import FailureError
from sim.benches.runner import run_bench


@pytest.fixture(autouse=True)
def quick_build(monkeypatch):
    """Nothing of Verilator's own is optimized: to compile it takes longer than to run it."""
    monkeypatch.setenv("MAKEFLAGS", "OPT_GLOBAL=-O0 OPT_SLOW=-O0")


def test_the_generated_verilog_joins_under_cocotb(capfd):
    run_bench(PRESETS["tiny"], name="test", seed=5, tuples=20)
    assert "scenarios passed, " in capfd.readouterr().out


@pytest.mark.long
def test_a_failing_scenario_fails_the_bench(monkeypatch):
    monkeypatch.setenv("SPLITJOIN_BENCH_DEADLINE", "10")
    with pytest.raises(
        FailureError, match=r"failed (\d+) of \1 scenarios \(seed 5\); log file: .*"
    ):
        run_bench(PRESETS["tiny"], name="test", seed=5, tuples=20)
