# SPDX-License-Identifier: Apache-2.0
"""Small configurations of the AXI shell's bench; `make sim` runs more."""

import pytest

from hdl.aggregate.aggregate_parameters import AGGREGATE_PRESETS
from hdl.parameters import JoinParameters, KeyField
from hdl.presets import PRESETS
from hdl.shells.axi import AxiOptions, AxiShell
from sim.benches.axi_runner import run_axi_bench

SMALL = JoinParameters.of(
    cores=1, sub_window=4, keys=(KeyField(name="x", bits=6),), timestamp_bits=9
)


@pytest.mark.long
@pytest.mark.parametrize("inputs", [1, 2, 5])
def test_the_generated_shell_joins_under_cocotb_and_is_as_fast_as_stated(tmp_path, inputs):
    options = AxiOptions(inputs=inputs)
    measured = run_axi_bench(
        SMALL, name="test", options=options, seed=5, tuples=12, folder=tmp_path
    )
    assert 0.99 < measured.pop("in") <= 1
    stated = AxiShell(SMALL, digest="0" * 64, options=options).latency
    assert measured == {"out": 1, "before": stated - 1, "behind": 1}


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [AxiOptions(bus_clock="separate"), AxiOptions(bus_clock="separate", inputs=2)],
    ids=["one input", "two inputs"],
)
def test_the_generated_shell_of_two_clocks_joins_under_cocotbext_axi(tmp_path, options):
    for seed in (1, 2):  # other ratios of the two clocks
        run_axi_bench(
            SMALL, name="two clocks", options=options, seed=seed, tuples=12, folder=tmp_path,
            drivers="tests.sim.benches.axi_models",
        )  # fmt: skip


@pytest.mark.long
def test_the_generated_shell_reduces_matches_under_cocotb(tmp_path):
    measured = run_axi_bench(
        PRESETS["tiny-join-aggregate"], name="test", tuples=20, folder=tmp_path
    )
    assert measured["in"] == 1


@pytest.mark.long
@pytest.mark.parametrize("inputs", [1, 3])
def test_the_generated_shell_aggregates_under_cocotb_and_takes_a_tuple_per_cycle(tmp_path, inputs):
    parameters = AGGREGATE_PRESETS["tiny-aggregate"]
    measured = run_axi_bench(
        parameters, name="test", options=AxiOptions(inputs=inputs), tuples=60, folder=tmp_path
    )
    assert 0.99 < measured["in"] <= 1.01


@pytest.mark.long
def test_the_generated_shell_aggregates_under_cocotbext_axi(tmp_path):
    run_axi_bench(
        AGGREGATE_PRESETS["tiny-aggregate"], name="test", tuples=20, folder=tmp_path,
        options=AxiOptions(inputs=3, bus_clock="separate"), drivers="tests.sim.benches.axi_models",
    )  # fmt: skip


@pytest.mark.long
def test_the_drivers_of_the_kit_agree(tmp_path):
    options = AxiOptions(bus_clock="separate")
    measured = run_axi_bench(SMALL, name="test", options=options, tuples=12, folder=tmp_path)
    assert measured["out"] == 1
