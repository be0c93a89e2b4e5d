# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from host.devices.software import SOFTWARE_MANIFEST
from host.errors import DeviceError
from host.protocol.manifest import Manifest
from host.protocol.storage import StorageRule

RULES = st.builds(StorageRule, st.integers(1, 7), st.integers(1, 5), st.sampled_from([1, 2, 8]))


@given(RULES, st.integers(1, 300))
def test_a_place_means_the_newest_tuple_that_it_can_hold(rule, before):
    """Store tuples one by one in rings, and ask for whatever they hold."""
    rings = {}
    for ordinal in range(before):
        core, local = ordinal % rule.cores, ordinal // rule.cores
        place = core, local // rule.lanes % rule.ring_rows, local % rule.lanes
        rings[place] = ordinal
    core, row, lane = np.array(list(rings), np.int64).T
    want = np.array(list(rings.values()))
    assert rule.ordinals(np.full(len(want), before), core, row, lane).tolist() == want.tolist()
    for got, expected in zip(rule.places(want), (core, row, lane), strict=True):
        assert got.tolist() == expected.tolist()


def test_each_pair_is_seen_from_its_own_probe():
    rule = StorageRule(cores=2, lanes=1, ring_rows=4)
    zero = np.zeros(3, np.int64)
    assert rule.ordinals(np.array([1, 8, 9]), zero, zero, zero).tolist() == [0, 0, 8]


def test_a_place_that_holds_nothing_is_an_error():
    rule = StorageRule(cores=2, lanes=1, ring_rows=4)
    before, row, lane = np.array([2, 2]), np.array([0, 1]), np.array([0, 0])
    with pytest.raises(DeviceError, match="row 1, lane 0"):
        rule.ordinals(before, np.array([0, 0]), row, lane)
    with pytest.raises(DeviceError, match="core 2"):
        rule.ordinals(np.array([9, 9]), np.array([0, 2]), row, lane)


def test_the_rule_of_an_accelerator_is_in_its_manifest():
    manifest = Manifest.load(SOFTWARE_MANIFEST)
    storage = replace(manifest.storage, cores=3, lanes=2, ring_rows=5)
    for described in (storage, replace(manifest, storage=storage)):
        assert StorageRule.of(described) == StorageRule(cores=3, lanes=2, ring_rows=5)


def test_no_pairs_are_no_error():
    empty = np.zeros(0, np.int64)
    assert len(StorageRule(2, 1, 4).ordinals(empty, empty, empty, empty)) == 0
