# SPDX-License-Identifier: Apache-2.0
"""A byte stream cut into datagrams, and their frames."""

import random

from amaranth import *
from amaranth.lib.wiring import connect
import pytest

from hdl.ethernet.frames import HEADER_BYTES
from hdl.ethernet.sending import DatagramPacker, DatagramSender
from hdl.ethernet.settings import EthernetSettings
from sim.ethernet.frames import Address, read_datagram
from sim.link.simulation import simulate
from tests.hdl.stream_bench import StreamBench

SETTINGS = EthernetSettings()
BOARD = Address(SETTINGS.mac_bytes, SETTINGS.ip_bytes, SETTINGS.port)
HOST = Address(b"\x02\x11\x22\x33\x44\x55", bytes((192, 168, 1, 7)), 50001)


@pytest.mark.parametrize(("most", "stalls"), [(4, 0.0), (8, 0.4), (16, 0.7)])
def test_a_byte_stream_is_cut_into_full_datagrams(most, stalls):
    data = random.Random(most).randbytes(12 * most + 3)
    dut = DatagramPacker(idle_cycles=40, most=most)
    bench = StreamBench(dut, deadline=4000, stalls=stalls, seed=most)
    bench.source(dut.i, data)
    lengths = bench.sink(dut.length, 13)
    got = bench.sink(dut.o, len(data))
    bench.run()
    assert lengths == [most] * 12 + [3]
    assert bytes(got) == data


@pytest.mark.parametrize("idle", [1, 3, 20])
def test_a_datagram_is_closed_when_no_byte_comes(idle):
    dut = DatagramPacker(idle_cycles=idle, most=8)

    async def bench(ctx):
        for count in (8, 2, 1):
            ctx.set(dut.i.valid, 1)
            for byte in range(count):
                ctx.set(dut.i.payload, byte)
                assert ctx.get(dut.i.ready)
                await ctx.tick()
            ctx.set(dut.i.valid, 0)
            late = dut.latency if count == 8 else dut.latency + idle
            for _ in range(late - 1):
                assert not ctx.get(dut.length.valid)
                await ctx.tick()
            assert ctx.get(dut.length.valid)
            assert ctx.get(dut.length.payload) == count
            ctx.set(dut.length.ready, 1)
            await ctx.tick()
            ctx.set(dut.length.ready, 0)
            assert not ctx.get(dut.length.valid)
            ctx.set(dut.o.ready, 1)
            await ctx.tick().repeat(12)
            ctx.set(dut.o.ready, 0)

    simulate(dut, bench, deadline=500)


class Sending(Elaboratable):
    """Packer and sender."""

    def __init__(self):
        self.packer, self.sender = DatagramPacker(idle_cycles=30), DatagramSender(SETTINGS)

    def elaborate(self, platform):
        m = Module()
        m.submodules.packer, m.submodules.sender = self.packer, self.sender
        connect(m, self.packer.length, self.sender.length)
        connect(m, self.packer.o, self.sender.i)
        return m


@pytest.mark.parametrize("sizes", [[1, 2, 17, 3], [1024, 30]])
def test_frames_of_datagrams_are_whole_numbered_and_without_gaps(sizes):
    dut = Sending()
    rng = random.Random(4)
    parts = [rng.randbytes(size) for size in sizes]
    frames = []
    taken = []

    async def bench(ctx):
        packer, sender = dut.packer, dut.sender
        for part in parts:
            for byte in part:
                ctx.set(packer.i.payload, byte)
                ctx.set(packer.i.valid, 1)
                assert ctx.get(packer.i.ready)
                await ctx.tick()
            ctx.set(packer.i.valid, 0)
            await ctx.tick().repeat(40)
        for _ in range(30):  # nobody has spoken
            assert not ctx.get(sender.o.valid)
            await ctx.tick()
        ctx.set(sender.known, 1)
        ctx.set(sender.peer, {"ip": int.from_bytes(HOST.ip, "big"), "port": HOST.port,
                              "mac": int.from_bytes(HOST.mac, "big")})  # fmt: skip
        ctx.set(sender.o.ready, 1)
        for part in parts:
            frame, cycles = bytearray(), 0
            while not ctx.get(sender.o.valid):
                cycles += 1
                assert cycles < 50
                await ctx.tick()
            last = 0
            while not last:
                assert ctx.get(sender.o.valid)
                frame.append(ctx.get(sender.o.payload.byte))
                last = ctx.get(sender.o.payload.last)
                cycles += 1
                await ctx.tick()
            frames.append(bytes(frame))
            taken.append(cycles - HEADER_BYTES - len(part))

    simulate(dut, bench, deadline=6000)
    for number, (frame, part) in enumerate(zip(frames, parts, strict=True)):
        found = read_datagram(frame)
        assert (found.source, found.target) == (BOARD, HOST)
        assert found.data == number.to_bytes(4, "little") + part
    assert set(taken) == {DatagramSender.latency}
