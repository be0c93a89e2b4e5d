# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.parameters import JoinParameters
from hdl.window.count_expiry import CountExpiry
from tests.hdl.cycles import each_cycle


@pytest.mark.parametrize("cores", [1, 2, 3, 4, 5])
def test_a_tuple_displaces_the_oldest_one_of_a_full_window(cores):
    """``displaces`` follows a tuple by the stated cycle, at a tuple per cycle, for all sizes."""
    parameters = JoinParameters(cores=cores, sub_window=3)
    for position in range(cores):
        dut = CountExpiry(parameters)
        assert dut.latency == 1
        generator = random.Random(cores * 10 + position)

        def steps(put, get, position=position, generator=generator):
            put(position=position, restart=1)
            yield
            size = parameters.capacity  # after reset
            for wanted in [None, *range(1, parameters.capacity + 1), None]:
                if wanted is not None:
                    put(size=wanted, advance=0, restart=0)
                    yield  # it is looked at a cycle earlier
                    size = wanted
                put(restart=1, begin=wanted is not None, size=0)
                yield
                put(restart=0, begin=0)
                count = 0
                for _ in range(3 * parameters.capacity):
                    owner = (count - size) % cores
                    assert get("displaces") == (count >= size and owner == position)
                    advance = generator.random() < 0.8
                    put(advance=advance)
                    count += advance
                    yield
                put(advance=0)

        each_cycle(dut, steps)
