# SPDX-License-Identifier: Apache-2.0
import random

from hdl.ethernet.phy import GmiiTransmitter
from sim.ethernet.frames import on_the_line
from sim.link.simulation import simulate


def sent(frames, *, missing=None):
    """Return what passes the line, one entry per cycle: a byte, or None; and where errors were.

    ``missing`` is the place of a byte of the first frame that comes a cycle late.
    """
    dut = GmiiTransmitter()
    line, errors = [], []

    def watch(ctx):
        line.append(ctx.get(dut.data) if ctx.get(dut.enable) else None)
        if ctx.get(dut.error):
            errors.append(len(line) - 1)

    async def bench(ctx):
        for number, frame in enumerate(frames):
            for place, byte in enumerate(frame):
                if number == 0 and place == missing:
                    ctx.set(dut.i.valid, 0)
                    watch(ctx)
                    await ctx.tick()
                ctx.set(dut.i.valid, 1)
                ctx.set(dut.i.payload.byte, byte)
                ctx.set(dut.i.payload.last, place == len(frame) - 1)
                while not ctx.get(dut.i.ready):
                    watch(ctx)
                    await ctx.tick()
                watch(ctx)
                await ctx.tick()
        ctx.set(dut.i.valid, 0)
        for _ in range(100):
            watch(ctx)
            await ctx.tick()

    simulate(dut, bench, deadline=sum(map(len, frames)) + 100 * len(frames) + 200)
    return line, errors


def split(line):
    """Return the bytes between gaps, and the lengths of the gaps between them."""
    text = "".join("." if byte is None else chr(0x100 + byte) for byte in line).strip(".")
    parts = [part for part in text.split(".") if part]
    gaps = [len(gap) for gap in text.translate(dict.fromkeys(range(256, 512), " ")).split()]
    return [bytes(ord(c) - 0x100 for c in part) for part in parts], gaps


def test_frames_are_sent_back_to_back_with_preamble_padding_checksum_and_gap():
    rng = random.Random(1)
    frames = [rng.randbytes(size) for size in (1, 60, 2, 59, 61, 1514, 3, 58, 100)]
    line, errors = sent(frames)
    parts, gaps = split(line)
    assert parts == [on_the_line(frame.ljust(60, b"\0")) for frame in frames]
    assert gaps == [12] * (len(frames) - 1)
    assert not errors
    taken = sum(len(part) for part in parts) + sum(gaps) + 12
    assert taken == sum(max(len(frame), 60) + GmiiTransmitter.overhead for frame in frames)


def test_the_first_byte_is_as_late_as_stated():
    line, _ = sent([bytes((0xA5, *range(59)))])
    assert line.index(0xA5) == GmiiTransmitter.latency


def test_a_missing_byte_makes_the_other_side_drop_the_frame():
    rng = random.Random(2)
    frames = [rng.randbytes(70), rng.randbytes(70)]
    line, errors = sent(frames, missing=30)
    parts, _ = split(line)
    assert errors == [line.index(0x55) + 8 + 30]
    assert parts[1:] == [on_the_line(frames[1])]
