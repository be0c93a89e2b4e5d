# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.ethernet.frames import ArpResponder
from hdl.ethernet.settings import EthernetSettings
from sim.ethernet.frames import Address, arp_answer, arp_request, datagram_frame
from tests.hdl.ethernet.frame_source import show
from tests.hdl.stream_bench import StreamBench

SETTINGS = EthernetSettings(ip="10.1.2.3")
BOARD = Address(SETTINGS.mac_bytes, SETTINGS.ip_bytes, 0)
ASKERS = [Address(bytes((2, n, 3, 4, 5, 6)), bytes((10, 1, 2, 9 + n)), 0) for n in range(3)]
ANSWER_BYTES = 42


def answers(shown, count, *, stalls=0.0, gap=90):
    """Return the frames that are sent when ``shown`` comes: frame, whether it is for the board."""
    dut = ArpResponder(SETTINGS)
    bench = StreamBench(dut, deadline=4000, stalls=stalls, seed=count)
    stamps, begun = [], []
    got = bench.sink(dut.o, count * ANSWER_BYTES, stamps)

    async def ask(ctx):
        for content, addressed, good in shown:
            ctx.set(dut.addressed, addressed)
            await show(ctx, dut.frame, content, good=good, gap=0)
            begun.append(bench.cycle - 1)
            await ctx.tick()
            ctx.set(dut.frame.good, 0)
            ctx.set(dut.frame.bad, 0)
            await ctx.tick().repeat(gap)
        bench.done()

    bench.spawn(ask)
    bench.run()
    rows = [got[at : at + ANSWER_BYTES] for at in range(0, len(got), ANSWER_BYTES)]
    assert all([value >> 8 for value in row] == [0] * 41 + [1] for row in rows)
    return [bytes(value & 0xFF for value in row) for row in rows], stamps, begun


@pytest.mark.parametrize("stalls", [0.0, 0.3])
def test_who_asks_for_the_board_is_answered(stalls):
    shown = [(arp_request(asker, BOARD.ip), 1, True) for asker in ASKERS]
    found, stamps, begun = answers(shown, len(ASKERS), stalls=stalls)
    assert found == [arp_answer(BOARD, asker)[:ANSWER_BYTES] for asker in ASKERS]
    if not stalls:
        assert stamps[0] - begun[0] == ArpResponder.latency + 1  # `good` comes a cycle later


def test_nothing_else_is_answered():
    asker = ASKERS[0]
    one = arp_request(asker, BOARD.ip)
    shown = [
        (one, 1, False),
        (one, 0, True),
        (arp_request(asker, bytes((10, 1, 2, 4))), 1, True),
        (arp_request(asker, BOARD.ip, operation=b"\0\2"), 1, True),
        (arp_request(asker, BOARD.ip, kinds=b"\0\1\x86\xdd\6\4"), 1, True),
        (datagram_frame(asker, BOARD, b"text"), 1, True),
        (random.Random(1).randbytes(60), 1, True),
        (one, 1, True),
    ]
    found, *_ = answers(shown, 1, gap=5)
    assert found == [arp_answer(BOARD, asker)[:ANSWER_BYTES]]


def test_a_request_during_an_answer_is_left_to_be_repeated():
    shown = [(arp_request(asker, BOARD.ip), 1, True) for asker in ASKERS[:2]]
    # With a sink that takes a byte in three cycles, the answer takes longer than the request.
    found, *_ = answers([*shown, shown[1]], 2, stalls=0.7, gap=60)
    assert found[0] == arp_answer(BOARD, ASKERS[0])[:ANSWER_BYTES]
    assert set(found[1:]) == {arp_answer(BOARD, ASKERS[1])[:ANSWER_BYTES]}
