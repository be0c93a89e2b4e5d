# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from bench.handshake import LOW_LATENCY
from bench.handshake.windows import HomeWindow
from hdl.parameters import JoinParameters
from tests.hdl.cycles import each_cycle


@pytest.mark.parametrize(("cores", "position"), [(1, 0), (2, 1), (3, 0), (5, 3)])
def test_a_core_counts_the_tuples_that_it_is_home_to(cores, position):
    """Also while words that expire tuples come before these."""
    parameters = JoinParameters.of(cores=cores, sub_window=4, architecture=LOW_LATENCY)
    dut = HomeWindow(parameters)
    generator = random.Random(cores)
    places = 2 * parameters.ring_rows

    def steps(put, get):
        put(position=position, restart=1)
        yield
        put(restart=0)
        came = left = base_head = base_tail = 0
        for _ in range(300):
            heads = len(range(position, came, cores))
            tails = len(range(position, left, cores))
            assert get("arrived") == came
            assert get("expired") == left
            assert get("mine") == (came % cores == position)
            assert get("head") == (base_head + heads) % places
            assert get("tail") == (base_tail + tails) % places
            assert get("rows") == max(0, heads - tails)
            assert get("oldest") == position + cores * tails
            held = came - left
            restart = held == 0 and generator.random() < 0.2
            arrives = not restart and held < cores * 4 and generator.random() < 0.6
            expires = not restart and held > -3 * cores and generator.random() < 0.5
            put(arrives=arrives, expires=expires, restart=restart)
            came, left = came + arrives, left + expires
            if restart:
                base_head += len(range(position, came, cores))
                base_tail += len(range(position, left, cores))
                came = left = 0
            yield

    each_cycle(dut, steps)
