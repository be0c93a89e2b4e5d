# SPDX-License-Identifier: Apache-2.0
"""Which rounds have a star, against every tuple of every window."""

import numpy as np
import pytest

from hdl.parameters import JoinParameters
from host.protocol.manifest import Manifest
from host.protocol.segments import StorageSegments, round_size
from host.protocol.storage import StorageRule
from sim.model.accelerator import Rounds, rounds_of
from tests.host.small_bundles import write_manifest


def stars(segments, size, start, before):
    """The rounds whose last tuple of any core is seen, one tuple after the other."""
    _, local = segments.locals(np.arange(start, before))
    return sorted({int(n) // size for n in local if n % size == size - 1})


@pytest.mark.parametrize("cores", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("live", [None, 2])
def test_a_round_has_a_star_if_the_last_tuple_of_it_in_any_core_is_seen(cores, size, live):
    segments = StorageSegments(StorageRule(cores, 2, 16))
    if live is not None and live <= cores:
        segments.begin(0, list(range(cores))[::-1][:live])
        segments.restart()
    start = np.array([n for n in range(14) for _ in range(n, 30)])
    before = np.array([end for n in range(14) for end in range(n, 30)])
    heard = np.zeros(cores, np.bool_)  # no core is mute
    found = rounds_of(segments, size, start, before, heard)
    assert [list(range(*ends)) for ends in zip(*map(np.ndarray.tolist, found), strict=True)] == [
        stars(segments, size, *ends) for ends in zip(start.tolist(), before.tolist(), strict=True)
    ]
    assert [len(part) for part in rounds_of(segments, size, start[:0], before[:0], heard)] == [0, 0]
    assert [len(part) for part in Rounds.empty()] == [0, 0]


def test_a_round_holds_a_quarter_of_a_ring_at_most(tmp_path):
    parameters = JoinParameters.of(cores=2, sub_window=20, lanes=2, rounds=True)
    manifest = Manifest.load(write_manifest(parameters, tmp_path / "bundle"))
    slots = parameters.ring_rows * parameters.engine.lanes
    assert [round_size(manifest, value) for value in (0, 1, 6, 12, slots, 1 << 40)] == [
        0, 1, 2, 4, slots // 4, slots // 4,
    ]  # fmt: skip
