# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.link.frames import FrameReceiver
from host.devices.link import FrameDecoder
from sim.link.simulation import simulate
from tests.hdl.link.frame_bytes import SESSION, random_frames


def received(data, *, stalls=0.0, seed=0):
    """Return what a receiver makes of the bytes: a frame, or None for what is none."""
    rng = random.Random(seed)
    dut = FrameReceiver()
    found, payload = [], {}

    async def step(ctx, byte):
        ctx.set(dut.i.valid, byte is not None)
        ctx.set(dut.i.payload, byte or 0)
        good, garbled = ctx.get(dut.good), ctx.get(dut.garbled)
        if ctx.get(dut.strobe):
            payload[ctx.get(dut.index)] = ctx.get(dut.byte)
        if good:
            text = bytes(payload[n] for n in range(ctx.get(dut.length)))
            found.append((ctx.get(dut.kind), ctx.get(dut.sequence), text))
        elif garbled:
            found.append(None)
        if good or garbled:
            payload.clear()
        await ctx.tick()

    async def bench(ctx):
        ctx.set(dut.session, SESSION)
        for byte in [*data, *[None] * dut.latency]:
            while rng.random() < stalls:
                await step(ctx, None)
            await step(ctx, byte)
        await step(ctx, None)

    simulate(dut, bench, deadline=10 * len(data) + 100)
    return found


def decoded(data):
    """Return what the codec in Python makes of the bytes."""
    decoder = FrameDecoder()
    decoder.session = SESSION
    frames = decoder.feed(data)
    # The board reads no WELCOME, so that its CRC needs not to be told apart.
    return [None if frame is None or frame.kind == 2 else tuple(frame) for frame in frames]


@pytest.mark.parametrize("stalls", [0.0, 0.4])
def test_frames_are_those_of_the_codec(stalls):
    frames, parts = random_frames(24, seed=1)
    found = received(b"".join(parts), stalls=stalls)
    assert found == [None if frame.kind == 2 else tuple(frame) for frame in frames]


def test_nothing_between_two_zeros_is_nothing():
    frames, parts = random_frames(3, seed=2)
    assert received(b"\0\0\0" + b"\0\0".join(parts) + b"\0") == [tuple(f) for f in frames[:3]]


@pytest.mark.parametrize("seed", range(3))
def test_damaged_bytes_give_what_the_codec_gives(seed):
    rng = random.Random(seed)
    _, parts = random_frames(30, seed, longest=60)
    data = bytearray(b"".join(parts))
    for _ in range(40):
        at = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at]
        elif kind == 2:
            data.insert(at, data[at])
        else:
            data.insert(at, rng.randrange(256))
    found, want = received(bytes(data)), decoded(bytes(data))
    assert found == want
    assert None in found
    assert any(found)


def test_what_is_too_long_or_too_short_is_no_frame():
    _, (good,) = random_frames(1, seed=4, longest=8)
    garbage = [b"\1", b"\2\3", b"\1" * 300, b"\xff" * 255, bytes(range(1, 255)) * 3]
    found = received(b"\0".join([*garbage, good]))
    assert found[:-1] == [None] * len(garbage)
    assert found[-1] is not None
