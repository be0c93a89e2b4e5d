# SPDX-License-Identifier: Apache-2.0
"""Random failures of simulated cores; ``failure.lost_pairs_exact`` runs a thousand of them."""

import pytest

from sim.failures.bundles import faulty
from sim.failures.trials import SHAPES, run_trial

TRIALS = 20
PORTS = {"two ports": SHAPES["scan, arity 2"].with_(result_streams=2)}


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "shape",
    # The soak compiles this one, too.
    ["scan, arity 2", *(pytest.param(n, marks=pytest.mark.long) for n in ("scan", "two ports"))],
)
def test_exactly_the_listed_pairs_are_missing(shape):
    bundle = faulty((SHAPES | PORTS)[shape], print)
    trials = [run_trial(bundle, seed) for seed in range(7_000, 7_000 + TRIALS)]
    assert [trial.text for trial in trials if not trial.right] == []
    assert sum(trial.failed for trial in trials) > TRIALS // 2
    assert sum(trial.missing for trial in trials) > 0
