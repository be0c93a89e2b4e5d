# SPDX-License-Identifier: Apache-2.0
import random

from hdl.ethernet.receiving import DatagramOrder
from host.devices.link.transport import Numbering
from sim.link.simulation import simulate

PEERS = [(0xC0A80101, 5000), (0xC0A80101, 5001), (0xC0A80102, 5000)]


def test_the_same_datagrams_are_taken_as_by_the_host():
    """The host's numbering decides, which the software board uses as well."""
    rng = random.Random(1)
    dut = DatagramOrder()
    numbering, peer = Numbering(), None
    taken = []

    async def bench(ctx):
        nonlocal peer
        last = 0xFFFF_FFF0
        for step in range(300):
            number = (
                rng.choice(
                    [last, last + 1, last + 2, last - 1, last + (1 << 31), last + (1 << 31) - 1, 0]
                    + [rng.randrange(1 << 32)] * (step % 7 == 0)
                )
                & 0xFFFF_FFFF
            )
            sender = PEERS[rng.random() < 0.1 and rng.randrange(3)]
            if sender != peer:
                numbering.forget()
            want = numbering.unpack(number.to_bytes(4, "little") + b"!") == b"!"
            ctx.set(dut.number, number)
            ctx.set(dut.sender, {"ip": sender[0], "port": sender[1], "mac": step})
            await ctx.tick().repeat(dut.latency)
            assert ctx.get(dut.ahead) == want, (number, last)
            assert ctx.get(dut.known) == any(taken)
            if want:
                ctx.set(dut.take, 1)
                await ctx.tick()
                ctx.set(dut.take, 0)
                last, peer = number, sender
                found = ctx.get(dut.peer)
                assert (found.ip, found.port, found.mac) == (*sender, step)
            taken.append(want)

    simulate(dut, bench, deadline=2000)
    assert 50 < sum(taken) < 250
