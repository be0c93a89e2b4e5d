# SPDX-License-Identifier: Apache-2.0
import pytest

from bench.figures.joins import compared_cycles


@pytest.mark.long
def test_a_predicate_that_is_a_text_takes_the_cycles_of_the_band_that_says_the_same(tmp_path):
    own, beside = compared_cycles(1 << 12, tmp_path, report=lambda text: None)
    assert own <= 1.01 * beside
    assert own > 1 << 12
