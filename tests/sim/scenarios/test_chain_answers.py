# SPDX-License-Identifier: Apache-2.0
"""Scenarios of chains of cores, and the model that answers them."""

import numpy as np
import pytest

from hdl.parameters import JoinParameters, KeyField
from host.protocol.manifest import Manifest
from sim.scenarios import assert_chain_right, chain_answer, make_scenario, names
from sim.soak.results import MARK
from tests.host.small_bundles import write_manifest


@pytest.mark.parametrize("architecture", ["handshake", "low-latency-handshake"])
def test_every_scenario_of_a_chain_has_an_answer(tmp_path, architecture):
    bundle = write_manifest(
        JoinParameters(
            cores=3, sub_window=8, keys=(KeyField(name="x", bits=8),), timestamp_bits=16,
            architecture=architecture,
        ),
        tmp_path,
    )  # fmt: skip
    manifest, pairs = Manifest.load(bundle), 0
    for name in names(manifest):
        scenario = make_scenario(manifest, name, tuples=40, seed=3)
        results = chain_answer(bundle, scenario).results
        assert (results.kind == MARK).sum() == scenario.marks
        pairs += results.is_pair.sum()
    assert pairs > 1_000


def test_a_mark_without_its_pairs_is_wrong(tmp_path):
    parameters = JoinParameters(cores=1, sub_window=4, architecture="handshake")
    bundle = write_manifest(parameters, tmp_path)
    manifest = Manifest.load(bundle)
    answer = chain_answer(bundle, make_scenario(manifest, "one hot key", tuples=20, seed=1))
    mark = manifest.result_word["kind"]
    assert mark.offset < 64
    word = manifest.result_kinds["MARK"] << mark.offset
    words = [[word] + [0] * (manifest.result_word.columns - 1)] * 3
    with pytest.raises(AssertionError, match="expected, 3 found"):
        assert_chain_right(bundle, np.array(words, np.uint64), answer)
