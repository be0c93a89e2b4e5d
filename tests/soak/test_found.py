# SPDX-License-Identifier: Apache-2.0
"""Programs that showed a difference once, made small."""

import numpy as np
import pytest

from tests.host.session.test_driver_simulated import PARAMETERS
from tests.soak.machine import Feeding
from tests.soak.test_runs import checker_of
from tests.soak.words import WordLayout


@pytest.mark.long
@pytest.mark.parametrize("together", [False, True], ids=["alone", "in a word with R"])
def test_stars_that_one_tuple_of_s_brings_leave_with_that_of_r_first(together):
    """Groups of two; R's ends early with the tuple of S that is the second of S's own."""
    manifest, checker = checker_of(PARAMETERS["index, two in a word"])
    kinds, storage = manifest["input_kinds"], manifest["storage"]
    patience = storage["cores"] * storage["slack"]
    assert patience % 2 == 0
    layout = WordLayout(manifest["input_word"])
    precision = layout.word(
        kind=kinds["CONTROL"], control_op=manifest["operations"]["PRECISION"], control_value=2
    )
    r, s = (layout.word(kind=kinds[name]) for name in "RS")
    last = layout.word(kind=kinds["BOTH" if together else "S"], first=1)
    words = np.concatenate([precision, r, *[s] * (patience - 1), last])
    assert checker.check(words, Feeding(seed=1)).difference is None
