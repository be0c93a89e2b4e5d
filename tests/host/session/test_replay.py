# SPDX-License-Identifier: Apache-2.0
"""Joins whose window is sent again after a failure: nothing is missing, and in order."""

import numpy as np
import pytest

from host import CountWindow, Ordering, TimeWindow
from host.operators.verification import reference_pairs
from host.session.join import Join
from tests.host.failing_device import FailingDevice, gated
from tests.host.session.test_core_failures import ROWS, pairs_of, query_of, tables
from tests.host.small_bundles import write_manifest

SHAPES = {
    "scan": gated(),
    "digests": gated(comparator="equality", digest_bits=5, probes=3, lanes=2),
    "index": gated(engine="index", tuples_per_word=2, cores=3),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("window", [CountWindow(60), TimeWindow(20)], ids=str)
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3, 4))]
)
def test_nothing_is_missing_however_many_cores_fail(tmp_path, shape, window, seed):
    parameters = SHAPES[shape]
    rng = np.random.default_rng(seed)
    left, right = tables(seed)
    cores = rng.permutation(parameters.cores)[: 1 + seed % (parameters.cores - 1)].tolist()
    places = sorted(rng.integers(20, 2 * ROWS, len(cores)).tolist())
    bounds = {} if parameters.predicate.kind == "band" else {"low": 0, "high": 0}
    ordering = [Ordering.outer(), Ordering.relaxed(5), Ordering.none()][seed % 3]
    how = ["inner", "full", "left_anti"][seed % 3]
    query = query_of(window, on_failure="replay", ordering=ordering, how=how, **bounds)
    if isinstance(window, CountWindow):
        room = (parameters.cores - len(cores)) * parameters.window.sub_window
        query = query_of(
            CountWindow(min(60, room - 4)),
            on_failure="replay",
            ordering=ordering,
            how=how,
            **bounds,
        )
    with FailingDevice(write_manifest(parameters, tmp_path / "bundle"), []) as device:
        sound = Join(left, right, query, device, record=True)
        sound.run()
    expected = pairs_of(sound)
    if how == "inner":
        reference = reference_pairs(left, right, query)
        assert expected == list(zip(*(column.tolist() for column in reference), strict=True))
    failures = list(zip(places, cores, strict=True))
    with FailingDevice(tmp_path / "bundle", failures) as device:
        join = Join(left, right, query, device, record=True)
        join.run()
        assert sorted(failure.core for failure in join.measured.failures.failures) == sorted(cores)
        assert join.measured.failures.replayed > 0
        assert join.measured.failures.lost_tuples == 0
        assert pairs_of(join) == expected
