# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.parameters import JoinParameters
from hdl.window.tracker import Turn
from tests.hdl.cycles import each_cycle


@pytest.mark.parametrize("cores", [1, 2, 3, 4, 5, 8])
def test_cores_take_turns(cores):
    """``mine`` follows a turn or a restart by the stated cycle, at a turn per cycle."""
    for position in range(cores):
        dut = Turn(JoinParameters.of(cores=cores, sub_window=4))
        assert dut.latency == 1
        generator = random.Random(position)

        def steps(put, get, position=position, generator=generator):
            put(position=position, restart=1)
            yield
            put(restart=0)
            count = 0
            for n in range(200):
                assert get("mine") == (count % cores == position)
                assert get("then") == ((count + 1) % cores == position)
                restart, advance = generator.random() < 0.05, n < 50 or generator.random() < 0.6
                put(restart=restart, advance=advance)
                count = 0 if restart else count + advance
                yield

        each_cycle(dut, steps)
