# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.ethernet.receiving import DatagramReceiver
from hdl.ethernet.settings import EthernetSettings
from sim.ethernet.frames import Address, arp_request, datagram_frame
from sim.link.simulation import simulate
from tests.hdl.ethernet.frame_source import show

SETTINGS = EthernetSettings(receive_bytes=2048)
BOARD = Address(SETTINGS.mac_bytes, SETTINGS.ip_bytes, SETTINGS.port)
HOST = Address(b"\x02\x11\x22\x33\x44\x55", bytes((192, 168, 1, 7)), 50001)
OTHER = Address(b"\x02\x11\x22\x33\x44\x66", bytes((192, 168, 1, 8)), 50001)


def numbered(number, data):
    return number.to_bytes(4, "little") + data


def received(shown, *, reading=True, addressed=1):
    """Return the bytes that come out of frames, and peer and delay of the last one."""
    dut = DatagramReceiver(SETTINGS)
    got, peers, delays = bytearray(), [], []

    async def bench(ctx):
        ctx.set(dut.addressed, addressed)
        ctx.set(dut.o.ready, reading)
        since = 0

        def each():
            nonlocal since
            if reading and ctx.get(dut.o.valid):
                got.append(ctx.get(dut.o.payload))
                delays.append(since)
            since += 1

        for item in shown:
            content, good = item if isinstance(item, tuple) else (item, True)
            since = 0
            # Bytes of a datagram come out while the next one comes in: only the gap is watched.
            await show(ctx, dut.frame, content, good=good, gap=len(content) + 8, each=each)
            peer = ctx.get(dut.peer)
            peers.append((peer.ip, peer.port, peer.mac) if ctx.get(dut.known) else None)
        ctx.set(dut.o.ready, 1)
        if not reading:
            for _ in range(3000):
                if ctx.get(dut.o.valid):
                    got.append(ctx.get(dut.o.payload))
                await ctx.tick()

    simulate(dut, bench, deadline=20_000)
    return bytes(got), peers, delays


def peer_of(address):
    return int.from_bytes(address.ip, "big"), address.port, int.from_bytes(address.mac, "big")


@pytest.mark.parametrize(("has_checksum", "longest"), [(True, 1024), (False, 65)])
def test_datagrams_of_every_length_come_through(has_checksum, longest):
    rng = random.Random(1)
    parts = [rng.randbytes(size) for size in (0, 1, 2, 3, 13, 14, 15, 64, longest)]
    shown = [
        datagram_frame(HOST, BOARD, numbered(n, part), has_checksum=has_checksum)
        for n, part in enumerate(parts)
    ]
    got, peers, delays = received(shown)
    assert got == b"".join(parts)
    assert set(peers) == {peer_of(HOST)}
    assert delays[0] == DatagramReceiver(SETTINGS).latency


def test_foreign_damaged_and_late_datagrams_are_dropped():
    text = b"text to drop"

    def odd(data=None, *, source=HOST, target=BOARD, number=9, **changes):
        return datagram_frame(source, target, numbered(number, data or text), **changes)

    good = odd(b"one")
    wrong_sum = bytearray(odd())
    wrong_sum[24] ^= 1
    wrong_text = bytearray(odd())
    wrong_text[50] ^= 4
    shown = [
        (odd(), False),
        odd(target=Address(BOARD.mac, bytes((192, 168, 1, 51)), BOARD.port)),
        odd(target=Address(BOARD.mac, BOARD.ip, BOARD.port + 1)),
        odd(protocol=b"\x40\x06"), odd(version=b"\x65\0"), odd(options=b"\1\1\1\1"),
        odd(cut=b"\0\0\x20\0"), odd(cut=b"\0\0\0\1"), odd(length=b"\0\x31"),
        odd(udp_length=b"\0\x09"), odd(udp_length=b"\x01\x00", length=b"\x01\x14"),
        bytes(wrong_sum), bytes(wrong_text), arp_request(HOST, BOARD.ip),
        datagram_frame(HOST, BOARD, b"abc"),
        datagram_frame(HOST, BOARD, numbered(9, bytes(1025))),
    ]  # fmt: skip
    got, peers, _ = received([*shown, good, odd(number=9), odd(number=8), odd(b"two", number=10)])
    assert got == b"onetwo"
    assert peers == [None] * len(shown) + [peer_of(HOST)] * 4


def test_a_frame_for_another_board_is_not_read():
    assert received([datagram_frame(HOST, BOARD, numbered(1, b"x"))], addressed=0)[0] == b""


def test_another_peer_is_remembered_whatever_its_number():
    shown = [
        datagram_frame(source, BOARD, numbered(number, text))
        for source, number, text in [(HOST, 7, b"a"), (OTHER, 3, b"b"), (HOST, 7, b"c")]
    ]
    got, peers, _ = received(shown)
    assert got == b"abc"
    assert peers == [peer_of(HOST), peer_of(OTHER), peer_of(HOST)]


def test_a_datagram_without_room_is_lost_as_a_whole():
    rng = random.Random(2)
    parts = [rng.randbytes(size) for size in (1024, 900, 130, 124)]
    shown = [datagram_frame(HOST, BOARD, numbered(n, part)) for n, part in enumerate(parts)]
    got, *_ = received(shown, reading=False)
    # One byte waits at the output besides those in the buffer.
    assert got == parts[0] + parts[1] + parts[3]
