# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from bench.handshake import LOW_LATENCY
from bench.handshake.chain import InFlight
from hdl.parameters import JoinParameters, KeyField
from tests.hdl.cycles import each_cycle


@pytest.mark.parametrize("last", [0, 1])
def test_what_is_sent_is_met_until_it_is_acknowledged_or_expires(last):
    parameters = JoinParameters.of(
        cores=3, sub_window=4, keys=(KeyField(name="x", bits=8),), comparator="equality",
        architecture=LOW_LATENCY,
    )  # fmt: skip
    dut = InFlight(parameters)
    generator = random.Random(last)

    def steps(put, get):
        sent, acknowledged, expired = [], 0, 0
        put(last=last)
        for _ in range(500):
            tail = max(acknowledged, expired)
            put(arrived=len(sent), add=0)
            if not last:
                assert get("tail") == tail
            assert get("met") == (0 if last else max(0, len(sent) - tail))
            # The last one is being written.
            for number in () if last else range(tail, len(sent) - 1):
                put(place=number % 32)
                key, homeless, oldest = sent[number]
                assert get("met_key")["x"] == key
                assert (get("met_homeless"), get("met_oldest")) == (homeless, oldest)
            add = get("room") and generator.random() < 0.6
            entry = (
                generator.randrange(-128, 128),
                generator.randrange(2),
                generator.randrange(99),
            )
            acks = not last and acknowledged < len(sent) and generator.random() < 0.5
            expires = expired < len(sent) + 4 and generator.random() < 0.4
            put(
                add=add, key={"x": entry[0]}, homeless=entry[1], oldest=entry[2],
                acknowledged=acks, expires=expires, kept=tail,
            )  # fmt: skip
            sent += [entry] * bool(add)
            acknowledged, expired = acknowledged + acks, expired + expires
            yield

    each_cycle(dut, steps)


def test_there_is_no_room_before_something_that_is_needed_would_be_overwritten():
    parameters = JoinParameters.of(cores=2, sub_window=4, architecture=LOW_LATENCY)
    dut = InFlight(parameters)

    def steps(put, get):
        sent = 0
        for _ in range(60):
            add = get("room")
            put(add=add, arrived=sent, kept=0)
            sent += add
            yield
        assert (1 << InFlight.BITS) - InFlight.RESERVE <= sent < 1 << InFlight.BITS
        put(add=0, arrived=sent, kept=sent)
        yield
        yield
        assert get("room")

    each_cycle(dut, steps)
