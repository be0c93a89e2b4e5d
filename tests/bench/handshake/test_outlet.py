# SPDX-License-Identifier: Apache-2.0
import random

from bench.handshake import HANDSHAKE
from bench.handshake.exits import Outlet
from hdl.parameters import JoinParameters, KeyField
from tests.hdl.cycles import each_cycle


def test_the_oldest_tuple_is_ready_after_the_stated_cycles():
    parameters = JoinParameters.of(
        cores=2, sub_window=4, keys=(KeyField(name="x", bits=8),), comparator="equality",
        architecture=HANDSHAKE,
    )  # fmt: skip
    dut = Outlet(parameters)
    generator = random.Random(0)

    def steps(put, get):
        memory, number = [generator.randrange(-128, 128) for _ in range(500)], 0
        read, waited, sent = [None, None], 0, 0
        for _ in range(400):
            put(readable=1, leaves=0, fetched={"x": memory[read[0]] if read[0] is not None else 0})
            if get("valid"):
                assert get("key")["x"] == memory[number]
                assert waited <= dut.latency
                sent += 1
            leaves = generator.random() < (0.7 if get("valid") else 0.05)  # sent, or expired
            put(leaves=leaves)
            waited = 0 if leaves or get("valid") else waited + 1
            read = [read[1], number if get("fetch") else None]
            number += leaves
            yield
        assert sent > 60

    each_cycle(dut, steps)
