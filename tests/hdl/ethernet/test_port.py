# SPDX-License-Identifier: Apache-2.0
"""The whole port at the pins of its PHY."""

import random

import pytest

from hdl.ethernet.frames import HEADER_BYTES
from hdl.ethernet.phy import GmiiTransmitter
from hdl.ethernet.port import EthernetPort
from hdl.ethernet.settings import EthernetSettings
from hdl.verilog.conversion import to_verilog
from hdl.verilog.lint import lint
from host.devices.link.transport import Numbering
from sim.ethernet.frames import (
    Address,
    arp_answer,
    arp_request,
    datagram_frame,
    on_the_line,
    read_datagram,
    read_line,
)
from sim.link.simulation import simulate
from tests.hdl.ethernet.phy_line import PhyLine

SETTINGS = EthernetSettings(idle_cycles=40)
BOARD = Address(SETTINGS.mac_bytes, SETTINGS.ip_bytes, SETTINGS.port)
HOST = Address(b"\x02\x11\x22\x33\x44\x55", bytes((192, 168, 1, 7)), 50001)


class Line(PhyLine):
    """The line of a port, with the byte streams at the other side."""

    def __init__(self, dut):
        super().__init__(dut.gmii)
        self.dut = dut
        self.sending, self.got = b"", bytearray()

    async def step(self, ctx):
        dut = self.dut
        self.drive(ctx)
        ctx.set(dut.o.ready, 1)
        if ctx.get(dut.o.valid):
            self.got.append(ctx.get(dut.o.payload))
        ctx.set(dut.i.valid, bool(self.sending))
        if self.sending:
            ctx.set(dut.i.payload, self.sending[0])
            if ctx.get(dut.i.ready):
                self.sending = self.sending[1:]
        await ctx.tick()


def run(bench, deadline):
    dut = EthernetPort(SETTINGS)
    line = Line(dut)

    async def process(ctx):
        await bench(ctx, line)

    simulate(dut, process, deadline=deadline)
    return line


@pytest.mark.long
def test_both_directions_carry_a_byte_per_cycle_at_once():
    rng = random.Random(1)
    parts = [rng.randbytes(1024) for _ in range(2)]
    data = rng.randbytes(2048)
    numbering = Numbering()

    async def bench(ctx, line):
        for part in (b"", *parts):
            line.put(on_the_line(datagram_frame(HOST, BOARD, numbering.pack(part))))
        line.sending = data
        while len(line.got) < 2048 or len(line.frames) < 2:
            await line.step(ctx)

    line = run(bench, 5000)
    assert bytes(line.got) == b"".join(parts)
    found = [read_datagram(frame) for frame in line.frames]
    assert {(one.source, one.target) for one in found} == {(BOARD, HOST)}
    back = Numbering()
    assert b"".join(back.unpack(one.data) for one in found) == data
    # Headers of a datagram are put together while the line carries the end of the one before.
    between = line.stamps[1] - line.stamps[0]
    assert between == 1024 + HEADER_BYTES + GmiiTransmitter.overhead


def test_who_asks_is_answered_between_datagrams():
    async def bench(ctx, line):
        line.put(on_the_line(datagram_frame(HOST, BOARD, bytes(4) + b"x")))
        line.put(on_the_line(arp_request(HOST, BOARD.ip)))
        line.sending = b"first"
        while len(line.frames) < 2:
            await line.step(ctx)

    line = run(bench, 2000)
    assert sorted(frame == arp_answer(BOARD, HOST) for frame in line.frames) == [False, True]
    assert {read_datagram(frame).data for frame in line.frames if frame[12:14] != b"\x08\x06"} == {
        bytes(4) + b"first"
    }


@pytest.mark.parametrize(("seed", "count"), [(0, 25), pytest.param(1, 300, marks=pytest.mark.long)])
def test_of_random_frames_only_the_right_ones_come_through(seed, count):
    rng = random.Random(seed)
    other = Address(b"\x02\0\0\0\0\x99", bytes((192, 168, 1, 99)), BOARD.port)
    numbering, check = Numbering(), Numbering()
    want, asked = bytearray(), 0

    async def bench(ctx, line):
        nonlocal asked
        for _ in range(count):
            data = rng.randbytes(rng.choice([0, 1, 14, 15, 40]))
            kind = rng.randrange(7)
            packed = numbering.pack(data)
            content = datagram_frame(HOST, BOARD, packed)
            if kind == 0:
                content = datagram_frame(HOST, other, packed)
            elif kind == 1:
                content = arp_request(HOST, rng.choice([BOARD.ip, other.ip]))
            elif kind == 2:
                content = datagram_frame(HOST, BOARD, packed, udp_length=b"\0\x40")
            text = bytearray(on_the_line(content))
            if kind == 3:
                text[rng.randrange(8, len(text))] ^= 1 << rng.randrange(8)
            elif kind == 4:
                del text[rng.randrange(8, len(text)) :]
            if (content := read_line(bytes(text))) is not None:
                if content[12:14] == b"\x08\x06":
                    asked += content == arp_request(HOST, BOARD.ip)
                elif content[:6] == BOARD.mac and kind != 2:
                    want.extend(check.unpack(read_datagram(content).data))
            line.put(text, gap=rng.choice([5, 12, 100]))
        while line.to_board:
            await line.step(ctx)
        for _ in range(200):
            await line.step(ctx)

    line = run(bench, 300 * count)
    assert line.got == want
    assert want
    assert line.frames == [arp_answer(BOARD, HOST)] * asked


def test_the_verilog_of_the_port_is_clean(tmp_path):
    file = tmp_path / "ethernet_port.v"
    file.write_text(to_verilog(EthernetPort(SETTINGS), name="ethernet_port"))
    assert lint(file, top="ethernet_port") == ""
