# SPDX-License-Identifier: Apache-2.0
"""Simulated accelerators whose cores are masked and unmasked at random, and hostile words."""

import pytest

from host.manifest import Manifest
from sim.failures.trials import SHAPES
from sim.scenarios import assert_right, random_scenario
from sim.scenarios.answers import answer
from sim.scenarios.hostile_words import hostile_scenario
from sim.soak.bundles import built

SEEDS = 25


@pytest.mark.timeout(600)
@pytest.mark.parametrize("write", [random_scenario, hostile_scenario])
@pytest.mark.parametrize("shape", SHAPES)
def test_masked_cores_answer_as_the_software_device_says(shape, write):
    bundle = built(SHAPES[shape], print)
    manifest = Manifest.load(bundle)
    for seed in range(SEEDS):
        scenario = write(manifest, seed, tuples=200)
        stalls = {"stall_in": 17 * seed % 128, "stall_out": 29 * seed % 128}
        assert_right(bundle, scenario, answer(bundle, scenario, seed=seed, **stalls))
