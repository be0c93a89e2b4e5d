# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.ethernet.phy import GmiiReceiver
from sim.ethernet.frames import on_the_line, read_line
from sim.link.simulation import simulate


def received(lines, *, gap=12, errors=()):
    """Return frame or None for each end of a frame, and the delays of first byte and end.

    ``errors`` are pairs of the number of a line and the place of a byte that the PHY cannot read.
    """
    dut = GmiiReceiver()
    found, parts, delays = [], bytearray(), []
    cycle = 0

    async def step(ctx, byte, error=0):
        nonlocal cycle
        ctx.set(dut.data, byte or 0)
        ctx.set(dut.valid, byte is not None)
        ctx.set(dut.error, error)
        frame = dut.frame
        if ctx.get(frame.strobe):
            assert ctx.get(frame.index) == len(parts)
            parts.append(ctx.get(frame.byte))
            delays.append((cycle, bytes(parts)))
        if ctx.get(frame.good) or ctx.get(frame.bad):
            assert not ctx.get(frame.strobe)
            found.append(bytes(parts[:-4]) if ctx.get(frame.good) else None)
            delays.append((cycle, None))
            parts.clear()
        cycle += 1
        await ctx.tick()

    async def bench(ctx):
        for number, line in enumerate(lines):
            for place, byte in enumerate(line):
                await step(ctx, byte, (number, place) in errors)
            for _ in range(gap):
                await step(ctx, None)

    simulate(dut, bench, deadline=sum(map(len, lines)) + (gap + 1) * len(lines) + 10)
    return found, delays


def contents(rng, sizes):
    return [rng.randbytes(size) for size in sizes]


@pytest.mark.parametrize(("gap", "longest"), [(12, [1514]), (4, [60])])
def test_frames_come_back_to_back_in_every_length(gap, longest):
    frames = contents(random.Random(1), [60, 61, 63, 64, 255, *longest])
    assert received([on_the_line(frame) for frame in frames], gap=gap)[0] == frames


def test_a_byte_and_the_end_are_shown_as_late_as_stated():
    (frame,) = contents(random.Random(2), [60])
    _, delays = received([on_the_line(frame)])
    assert delays[0][0] == 8 + GmiiReceiver.latency
    assert delays[-1] == (8 + 64 + GmiiReceiver.latency, None)


def test_a_phy_may_swallow_the_preamble():
    rng = random.Random(3)
    frames = contents(rng, [60, 70, 80])
    lines = [on_the_line(frame)[cut:] for frame, cut in zip(frames, (7, 3, 1), strict=True)]
    assert received(lines)[0] == frames


def test_frames_that_are_too_short_or_too_long_are_bad():
    frames = contents(random.Random(4), [1, 59, 60, 1515, 1600, 61])
    want = [None, None, frames[2], None, None, frames[5]]
    assert received([on_the_line(frame) for frame in frames])[0] == want


def test_a_byte_that_the_phy_could_not_read_makes_a_frame_bad():
    frames = contents(random.Random(5), [60, 60, 60])
    lines = [on_the_line(frame) for frame in frames]
    found, _ = received(lines, errors={(0, 8), (1, 71)})
    assert found == [None, None, frames[2]]


def test_what_begins_with_no_preamble_is_skipped():
    rng = random.Random(6)
    (frame,) = contents(rng, [60])
    junk = [b"\x55\x54" + rng.randbytes(80), b"\x00", b"\x55" * 9]
    found, _ = received([*junk, on_the_line(frame)], errors={(2, 4)})
    assert found == [frame]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_damaged_frames_are_what_the_model_makes_of_them(seed):
    rng = random.Random(seed)
    lines = []
    for content in contents(rng, [rng.choice([60, 64, 90, 200]) for _ in range(24)]):
        line = bytearray(on_the_line(content))
        at = rng.randrange(8, len(line))
        kind = rng.randrange(5)
        if kind == 0:
            line[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del line[at]
        elif kind == 2:
            line.insert(at, rng.randrange(256))
        elif kind == 3:
            del line[at:]
        lines.append(bytes(line))
    found, _ = received(lines)
    assert found == [read_line(line) for line in lines]
    assert None in found
    assert any(found)
