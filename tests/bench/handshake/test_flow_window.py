# SPDX-License-Identifier: Apache-2.0
import random

from bench.handshake import HANDSHAKE
from bench.handshake.windows import FlowWindow
from hdl.parameters import JoinParameters
from tests.hdl.cycles import each_cycle


def test_numbers_say_what_is_here_and_what_is_kept():
    parameters = JoinParameters.of(cores=2, sub_window=4, architecture=HANDSHAKE)
    dut = FlowWindow(parameters)
    generator = random.Random(1)

    def steps(put, get):
        head = following = tail = 0
        since = 0  # tuples that were there a cycle ago
        for _ in range(400):
            assert (get("head"), get("following"), get("tail")) == (head, following, tail)
            assert get("rows") == head - tail
            assert get("held") == head - following
            assert get("readable") == (since > following)
            arrives = head - tail < parameters.ring_rows and generator.random() < 0.5
            leaves = following < head and generator.random() < 0.5
            releases = tail < following and generator.random() < 0.5
            restart = generator.random() < 0.02
            put(arrives=arrives, leaves=leaves, releases=releases, restart=restart)
            since = head
            head, following, tail = head + arrives, following + leaves, tail + releases
            yield
            if restart:  # as there is nothing then, what is readable does not matter
                put(arrives=0, leaves=0, releases=0, restart=1)
                yield
                put(restart=0)
                yield
                head = following = tail = since = 0

    each_cycle(dut, steps)
