# SPDX-License-Identifier: Apache-2.0
"""The bench of aggregates passes, and notices what is wrong."""

import pytest

from hdl.aggregate.aggregate_parameters import AGGREGATE_PRESETS
from host.errors import FailureError
from sim.benches.runner import run_aggregate_bench

pytestmark = pytest.mark.long


def test_the_bench_passes_and_a_deadline_ends_it(tmp_path):
    tiny = AGGREGATE_PRESETS["tiny-aggregate"]
    run = {"name": "tiny aggregate", "seed": 4, "folder": tmp_path}
    assert run_aggregate_bench(tiny, **run) == 12
    with pytest.raises(FailureError, match="failed 12 of 12 scenarios"):
        run_aggregate_bench(tiny, tuples=20, deadline=-10_000_000, **run)
