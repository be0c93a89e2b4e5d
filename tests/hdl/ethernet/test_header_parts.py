# SPDX-License-Identifier: Apache-2.0
"""What reads and writes headers, and the sum of IPv4."""

import random

import pytest

from hdl.ethernet.frames import FieldCapture, HeaderMatch, HeaderWriter, OnesSum, bytes_at
from hdl.ethernet.sending import FrameChoice
from sim.ethernet.frames import checksum
from sim.link.simulation import simulate
from tests.hdl.ethernet.frame_source import show
from tests.hdl.stream_bench import StreamBench


@pytest.mark.parametrize("first", [0, 1, 0xFFFC])
def test_the_sum_is_that_of_ones_complement(first):
    rng = random.Random(first)
    dut = OnesSum(first=first)

    async def bench(ctx):
        for count in range(1, 20):
            words = [rng.choice([0, 1, 0xFFFF, rng.randrange(1 << 16)]) for _ in range(count)]
            ctx.set(dut.clear, 1)
            await ctx.tick()
            ctx.set(dut.clear, 0)
            for word in words:
                ctx.set(dut.add, 1)
                ctx.set(dut.word, word)
                await ctx.tick()
                ctx.set(dut.add, 0)
                while rng.random() < 0.3:
                    await ctx.tick()
            await ctx.tick().repeat(dut.latency - 1)
            data = b"".join(word.to_bytes(2, "big") for word in (first, *words))
            assert ctx.get(dut.total) == checksum(data) ^ 0xFFFF

    simulate(dut, bench, deadline=1000)


def test_a_header_matches_if_all_bytes_are_as_expected():
    expected = bytes_at(0, b"\x01\x02\x03") | {12: 8, 20: (0, 0xBF)}
    dut = HeaderMatch(expected)
    base = bytearray(random.Random(1).randbytes(60))
    for place, value in {**expected, 20: 0x40}.items():
        base[place] = value

    async def bench(ctx):
        for place, flip, want in [
            (5, 1, True), (0, 1, False), (2, 128, False), (12, 2, False), (13, 1, True),
            (20, 0x40, True), (20, 0x20, False), (59, 1, True),
        ]:  # fmt: skip
            content = bytearray(base)
            content[place] ^= flip
            await show(ctx, dut.frame, bytes(content), gap=dut.latency - 1)
            assert ctx.get(dut.matches) == want, (place, flip)
            await ctx.tick()

    simulate(dut, bench, deadline=1000)


def test_a_header_match_asks_for_what_every_frame_has():
    with pytest.raises(ValueError, match=r"below 60, which every frame has, not \[60\]"):
        HeaderMatch({60: 1})


def test_fields_are_kept_as_numbers():
    fields = {"one": (0, 1), "two": (7, 2), "six": (9, 6)}
    dut = FieldCapture(fields)
    rng = random.Random(3)

    async def bench(ctx):
        for _ in range(3):
            content = rng.randbytes(60)
            await show(ctx, dut.frame, content)
            for name, (first, size) in fields.items():
                want = int.from_bytes(content[first : first + size], "big")
                assert ctx.get(getattr(dut, name)) == want

    simulate(dut, bench, deadline=1000)


@pytest.mark.parametrize(("count", "stalls"), [(1, 0.0), (3, 0.5), (7, 0.0), (42, 0.4)])
def test_a_row_of_bytes_is_sent_as_often_as_it_is_started(count, stalls):
    dut = HeaderWriter(count)
    rows = [random.Random(n).randbytes(count) for n in range(3)]
    bench = StreamBench(dut, deadline=2000, stalls=stalls, seed=count)
    stamps, begun = [], []
    got = bench.sink(dut.o, count * len(rows), stamps)

    async def start(ctx):
        for row in rows:
            for n, byte in enumerate(row):
                ctx.set(dut.row[n], byte)
            ctx.set(dut.start, 1)
            await ctx.tick()
            begun.append(bench.cycle - 1)
            ctx.set(dut.start, 0)
            want = count * len(begun)
            while len(got) < want:
                await ctx.tick()
        bench.done()

    bench.spawn(start)
    bench.run()
    assert bytes(value & 0xFF for value in got) == b"".join(rows)
    lasts = [value >> 8 for value in got]
    assert lasts == [n % count == count - 1 for n in range(count * len(rows))]
    if not stalls:
        assert stamps[0] - begun[0] == dut.latency
        assert stamps[count - 1] - stamps[0] == count - 1


@pytest.mark.parametrize("stalls", [0.0, 0.4])
def test_frames_of_two_senders_are_not_mixed(stalls):
    dut = FrameChoice()
    rng = random.Random(7)
    frames = [
        [[rng.randrange(128) + 128 * side for _ in range(rng.choice([1, 2, 5]))] for _ in range(12)]
        for side in range(2)
    ]
    bench = StreamBench(dut, deadline=2000, stalls=stalls, seed=5)
    for side in range(2):
        values = [
            byte | (n == len(frame) - 1) << 8
            for frame in frames[side] for n, byte in enumerate(frame)
        ]  # fmt: skip
        bench.source(dut.i[side], values)
    got = bench.sink(dut.o, sum(len(frame) for side in frames for frame in side))
    bench.run()
    found, part = [[], []], []
    for value in got:
        part.append(value & 0xFF)
        if value >> 8:
            found[part[0] >> 7].append(part)
            part = []
    assert found == frames
