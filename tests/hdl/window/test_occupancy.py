# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.parameters import JoinParameters
from hdl.window.tracker import Occupancy
from tests.hdl.cycles import each_cycle


@pytest.mark.parametrize("sub_window", [1, 2, 3, 4, 7, 16])
def test_full_and_vacant_follow_what_comes_and_leaves(sub_window):
    """Both hold from the stated cycle on, with keys that come and leave in every cycle."""
    dut = Occupancy(JoinParameters.of(cores=1, sub_window=sub_window))
    assert dut.latency == 1
    generator = random.Random(sub_window)

    def steps(put, get):
        put(restart=1)
        yield
        held = 0
        for n in range(600):
            assert get("full") == (held == sub_window)
            assert get("vacant") == (held == 0)
            filling = n // 40 % 2 == 0  # to and fro between both ends
            leaves = held > 0 and generator.random() < (0.3 if filling else 0.9)
            comes = held - leaves < sub_window and generator.random() < (0.9 if filling else 0.3)
            restart = generator.random() < 0.02
            put(comes=comes, leaves=leaves, restart=restart)
            held = 0 if restart else held + comes - leaves
            yield

    each_cycle(dut, steps)
