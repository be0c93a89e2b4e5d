# SPDX-License-Identifier: Apache-2.0
"""Scenarios of chains of cores, and the reference join that answers them."""

import numpy as np
import pytest

from sim.scenarios import assert_chain_right, chain_answer, make_scenario, names
from tests.soak.model import ChainModel
from tests.soak.test_chains import CHAINS, by_mark, manifests


@pytest.mark.parametrize("architecture", CHAINS)
def test_every_scenario_of_a_chain_has_the_answer_of_the_soak(tmp_path, architecture):
    ours, manifest = manifests(
        tmp_path, cores=3, sub_window=8, timestamp_bits=16, architecture=architecture
    )
    pairs = 0
    for name in names(manifest):
        scenario = make_scenario(manifest, name, tuples=40, seed=3)
        answer = chain_answer(manifest, scenario.words)
        assert by_mark(ChainModel(ours).answer(scenario.words)) == (answer.pairs, answer.faults)
        assert len(answer.pairs) == scenario.marks
        pairs += len(answer) - scenario.marks
    assert pairs > 1_000


def test_a_mark_without_its_pairs_is_wrong(tmp_path):
    _, manifest = manifests(tmp_path, cores=1, sub_window=4, architecture=CHAINS[0])
    scenario = make_scenario(manifest, "one hot key", tuples=20, seed=1)
    answer = chain_answer(manifest, scenario.words)
    mark = manifest.result_word["kind"]
    assert mark.offset < 64
    word = manifest.result_kinds["MARK"] << mark.offset
    words = [[word] + [0] * (manifest.result_word.columns - 1)] * len(answer.pairs)
    with pytest.raises(AssertionError, match="before mark 2 are not those"):
        assert_chain_right(manifest, np.array(words, np.uint64), answer)
