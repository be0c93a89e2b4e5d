# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.parameters import JoinParameters
from hdl.window.tracker import MovingSpan
from tests.hdl.cycles import each_cycle


@pytest.mark.parametrize(
    ("sub_window", "lanes"), [(1, 1), (4, 1), (5, 2), (8, 3), (16, 4), (15, 5)]
)
def test_the_ends_follow_what_comes_and_leaves(sub_window, lanes):
    """They hold from the stated cycle on, with keys that come and leave in every cycle."""
    parameters = JoinParameters.of(cores=1, sub_window=sub_window, lanes=lanes)
    dut = MovingSpan(parameters)
    assert dut.latency == 1
    generator = random.Random(sub_window)
    rows = 2 * parameters.ring_rows

    def steps(put, get):
        put(restart=1)
        yield
        head = tail = 0
        for _ in range(400):
            span = get("span")
            assert (span.head.row, span.head.lane) == (head // lanes % rows, head % lanes)
            assert (span.tail.row, span.tail.lane) == (tail // lanes % rows, tail % lanes)
            assert get("second") == (tail // lanes + 1) % rows
            assert get("stop") == -(-head // lanes) % rows
            leaves = head > tail and generator.random() < 0.7
            comes = head - tail - leaves < sub_window and generator.random() < 0.7
            restart = generator.random() < 0.01
            put(comes=comes, leaves=leaves, restart=restart)
            head, tail = (0, 0) if restart else (head + comes, tail + leaves)
            yield

    each_cycle(dut, steps)
