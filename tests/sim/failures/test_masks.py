# SPDX-License-Identifier: Apache-2.0
"""Simulated accelerators whose cores are masked and unmasked at random, and hostile words."""

import numpy as np
import pytest

from host.devices import Stamps
from host.devices.simulated import SimulatedDevice
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from sim.failures.bundles import built, faulty
from sim.failures.trials import SHAPES
from sim.scenarios import assert_right, random_scenario
from sim.scenarios.answers import answer
from sim.scenarios.hostile_words import hostile_scenario

SEEDS = 10


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "write", [pytest.param(random_scenario, marks=pytest.mark.long), hostile_scenario]
)
@pytest.mark.parametrize("shape", ["scan, arity 2", pytest.param("scan", marks=pytest.mark.long)])
def test_masked_cores_answer_as_the_software_device_says(shape, write):
    bundle = faulty(SHAPES[shape], print)  # of which no core fails here
    manifest = Manifest.load(bundle)
    for seed in range(SEEDS):
        scenario = write(manifest, seed, tuples=200)
        stalls = {"stall_in": 17 * seed % 128, "stall_out": 29 * seed % 128}
        assert_right(bundle, scenario, answer(bundle, scenario, seed=seed, **stalls))


def emitted(bundle, words, marks):
    """Return the cycles in which an accelerator accepts words and emits results."""
    accepted, produced = [], []
    with SimulatedDevice(bundle) as device:
        results = np.zeros((1 << 16, device.manifest.result_word.columns), np.uint64)
        codec = WordCodec(device.manifest)
        while marks:
            stamps = Stamps.for_arrays(words, results)
            done = device.exchange(words, results, cycles=1_000_000, stamps=stamps)
            words = words[done.accepted :]
            accepted += stamps.accepted[: done.accepted].tolist()
            produced += stamps.produced[: done.produced].tolist()
            marks -= int(codec.marks(results[: done.produced]).sum())
    return accepted, produced


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("shape", SHAPES)
def test_gates_cost_no_cycle(shape):
    with_gates = built(SHAPES[shape], print)
    without = built(SHAPES[shape].with_(failure_cycles=0), print)
    manifest = Manifest.load(without)
    for seed in range(10):
        scenario = random_scenario(manifest, seed, tuples=500)
        runs = [emitted(bundle, scenario.words, scenario.marks) for bundle in (with_gates, without)]
        assert runs[0] == runs[1]
