# SPDX-License-Identifier: Apache-2.0
"""Flipped bits in simulated memories; ``failure.silent_flips`` runs three thousand of them."""

import os

import numpy as np
import pytest

from hdl.bundle import generate
from host.devices.simulated import SimulatedDevice
from host.errors import DeviceError
from host.query.queries import Query
from host.session.join import Join
from sim.failures.bundles import flippable
from sim.failures.flip_trials import FLIP_SHAPES, run_flip
from sim.failures.flips import VARIABLES, flipping, memories_of, with_flips
from sim.failures.trials import tables

TRIALS = 60


@pytest.mark.long
def test_every_memory_of_stored_tuples_can_flip():
    parameters = FLIP_SHAPES["equality index"]
    verilog, _ = generate(parameters)
    memories = memories_of(verilog)
    # In each region: the heads, the keys, the links, and the deadlines of the window.
    assert len(memories) == parameters.cores * 2 * 4
    assert {(memory.core, memory.side) for memory in memories} == {
        (core, side) for core in range(parameters.cores) for side in range(2)
    }
    assert {memory.rows for memory in memories} == {16, 64, parameters.ring_rows}
    assert all(memory.path.endswith(".zeroed") for memory in memories)
    flipped = with_flips(verilog)
    for n, memory in enumerate(memories):
        assert f"{n}: {memory.path}[flip_row][flip_bit] <=" in flipped


def test_an_accelerator_without_parity_is_refused():
    verilog = "module splitjoin(clk);\n  reg [7:0] memory [3:0];\nendmodule\n"
    with pytest.raises(ValueError, match="no memories with parity.*generate the bundle with --par"):
        memories_of(verilog)


def test_the_flip_is_set_for_devices_that_are_opened_meanwhile():
    with flipping(3, 5, 7, 99):
        assert [os.environ[name] for name in VARIABLES] == ["3", "5", "7", "99"]
    assert not set(VARIABLES) & set(os.environ)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("shape", ["equality index", "digests"])
def test_no_flip_makes_a_silent_wrong_answer(shape):
    bundle = flippable(FLIP_SHAPES[shape], print)
    trials = [run_flip(bundle, seed) for seed in range(9_000, 9_000 + TRIALS)]
    assert [trial.text for trial in trials if not trial.right] == []
    assert sum(trial.failed for trial in trials) > 0
    assert sum(trial.missing for trial in trials) > 0


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_join_that_must_not_go_on_names_the_cause():
    """The lowest bits of all heads of core 1 that hold tuples of S; they are read at once."""
    parameters = FLIP_SHAPES["equality index"]
    bundle = flippable(parameters, print)
    memories = memories_of((bundle / "splitjoin.v").read_text("utf-8"))
    heads = next(
        n
        for n, memory in enumerate(memories)
        if (memory.core, memory.side, memory.rows) == (1, 1, 16)
    )
    left, right = tables(np.random.default_rng(1))
    query = Query(on="x", time="t", rows=60)
    told = []
    for row in range(16):
        with flipping(heads, row, 0, 300), SimulatedDevice(bundle) as device:
            try:
                Join(left, right, query, device).run()
            except DeviceError as error:
                told.append(str(error))
                counters = device.counters()
                assert counters["failures"] == 1
                assert counters["parity_errors"] > 0
    assert told
    assert all("Core 1 " in text for text in told)
    assert all("It read a flipped bit in its tuples of S. Run the join" in text for text in told)
