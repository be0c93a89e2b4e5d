# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.link.endpoint import COUNTER_NAMES
from hdl.link.settings import HASH_BYTES, LEAST, NOISY_STEP, STEP, VERSION, Kind
from host.devices.link import endpoint, frames
from host.devices.link.endpoint import Answer
from sim.link.line import LineBench
from tests.hdl.link.link_settings import settings


def random_words(bits, count, seed):
    rng = random.Random(seed)
    return [rng.choice((0, 1, rng.randrange(1 << bits))) for _ in range(count)]


def exchanged(line, count_in, count_out, *, after=None):
    """Exchange random words; return the cycles."""
    inputs = random_words(37, count_in, seed=1)
    outputs = random_words(21, count_out, seed=2)
    assert line.exchange(inputs, outputs, after=after) == outputs
    assert line.words == inputs
    return line.cycle


def test_both_sides_know_the_same_protocol():
    assert {kind.name: kind.value for kind in Kind} == {k.name: k.value for k in frames.Kind}
    assert VERSION == frames.VERSION
    assert (LEAST, STEP, NOISY_STEP) == (endpoint.LEAST, endpoint.STEP, endpoint.NOISY_STEP)
    assert HASH_BYTES == 32


def counters(ctx, line):
    return {name: ctx.get(line.dut.counters[name]) for name in COUNTER_NAMES}


@pytest.mark.parametrize("stalls", [0.5, pytest.param(0.0, marks=pytest.mark.long)])
def test_words_pass_both_ways(stalls):
    line = LineBench(settings(), stalls=stalls)

    async def after(ctx):
        assert ctx.get(line.dut.open)
        seen = counters(ctx, line)
        assert seen["frames_in"] == line.host.counters().frames_out
        assert seen["frames_out"] == line.host.counters().frames_in
        for name in ("repeated", "timeouts", "garbled", "dropped", "asked"):
            assert seen[name] == 0

    exchanged(line, 150, 250, after=after)
    told = line.host.greeting
    assert (told.input_bytes, told.result_bytes, told.payload_bytes) == (5, 3, 60)
    assert (told.receive_slots, told.send_slots, told.hash) == (4, 4, bytes(range(32)))


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_words_come_once_and_in_order_with_one_byte_in_a_hundred_damaged(seed):
    line = LineBench(settings(), rate=0.01, stalls=0.2, seed=seed)

    async def after(ctx):
        seen = counters(ctx, line)
        assert seen["garbled"] > 3
        assert seen["repeated"] > 3

    exchanged(line, 100, 160, after=after)
    assert line.host.counters().garbled > 3


@pytest.mark.long
def test_a_busy_line_carries_words_nine_tenths_of_the_time():
    chosen = settings(payload_bytes=240, send_slots=8, receive_slots=8, timeout_cycles=9000)
    line = LineBench(chosen)
    cycles = exchanged(line, 800, 1330)
    assert 1330 * 3 / (cycles / line.pace) > 0.84  # frames are short at first
    assert 1330 * 3 / line.bytes_out > 0.9


def test_a_session_is_resumed_where_it_stood():
    line = LineBench(settings())
    cut = iter((200, 500, 900))
    at = [next(cut)]

    async def interrupt(ctx):
        if line.cycle == at[0]:
            line.queue = b""
            line.host.reconnect(line.cycle / 1e6)
            at[0] = next(cut, None)
        await plain(ctx)

    plain, line.step = line.step, interrupt

    async def after(ctx):
        assert counters(ctx, line)["resumed"] >= 3

    exchanged(line, 100, 150, after=after)
    assert line.host.counters().resumed == 3


def test_a_new_session_forgets_all_words():
    line = LineBench(settings())
    line.results = random_words(21, 100, seed=3)
    begun = []

    async def bench(ctx):
        await line.until(ctx, lambda: line.host.is_open)
        line.host.sender.offer(bytes(50))
        await line.until(ctx, lambda: len(line.words) >= 5)
        old, line.host = line.host, line.new_host(77)
        line.results, line.held, line.words = [], None, []
        for _ in range(4000):
            if ctx.get(line.dut.begin):
                begun.append(line.cycle)
                line.words.clear()
            await line.step(ctx)
            if line.host.is_open and line.cycle - begun[0] > 800:
                break
        line.host.sender.offer(bytes((1, 0, 0, 0, 0)))
        line.results = [5, 6]
        await line.until(ctx, lambda: line.host.receiver.waiting == 6 and len(line.words) == 1)
        assert line.host.receiver.take(6) == bytes((5, 0, 0, 6, 0, 0))
        line.host = old
        old.reconnect(line.cycle / 1e6)
        await line.until(ctx, lambda: old.greeting is not None)
        assert not old.is_open
        assert old.greeting.session == 77

    line.run(bench)
    assert len(begun) == 1


def test_registers_are_read_and_written_once_over_a_bad_line():
    line = LineBench(settings(), rate=0.02, seed=4)
    seen = []

    async def serve(ctx):
        bus = line.dut.registers
        asked = ctx.get(bus.read), ctx.get(bus.write)
        done = any(asked) and line.random.random() < 0.3
        ctx.set(bus.done, done)
        if done:
            address = ctx.get(bus.address)
            ctx.set(bus.answer, 0xAB000000 + address)
            ctx.set(bus.refused, address == 0xFFC)
            seen.append((*asked, address, ctx.get(bus.data), ctx.get(bus.strobe)))
        await plain(ctx)

    plain, line.step = line.step, serve

    async def bench(ctx):
        await line.until(ctx, lambda: line.host.is_open)
        for n in range(5):
            line.host.request(0x100 + 4 * n)
            await line.until(ctx, lambda: line.host.answer() is not None)
            assert line.host.answer() == Answer(False, 0xAB000100 + 4 * n)
            line.host.request(0x40, 0x12340000 + n, 0x5)
            await line.until(ctx, lambda: line.host.answer() is not None)
            assert line.host.answer() == Answer(False, 0)
        line.host.request(0xFFC)
        await line.until(ctx, lambda: line.host.answer() is not None)
        assert line.host.answer() == Answer(True, 0)

    line.run(bench)
    reads = [address for read, _, address, _, _ in seen if read]
    assert reads == [0x100 + 4 * n for n in range(5)] + [0xFFC]
    writes = [step[2:] for step in seen if step[1]]
    assert writes == [(0x40, 0x12340000 + n, 5) for n in range(5)]


def test_while_no_session_has_begun_nothing_leaves():
    line = LineBench(settings())
    line.results = [1, 2, 3]

    async def bench(ctx):
        line.host.transmit(0.0, 1000)  # the greeting is lost
        for _ in range(1000):
            await line.step(ctx)
        assert line.bytes_out == 0

    line.run(bench)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"payload_bytes": 4}, "5 bytes, which a word takes, to 247 bytes, not 4"),
        ({"payload_bytes": 248}, "not 248"),
        ({"send_slots": 3}, "'send_slots' must be a power of two, 2 to 32, not 3"),
        ({"receive_slots": 128}, "'receive_slots' must be a power of two, 2 to 32, not 128"),
        ({"timeout_cycles": 0}, "'timeout_cycles' must be at least one cycle, not 0"),
        ({"hash": b"abc"}, "must have 32 bytes, not 3"),
    ],
)
def test_settings_out_of_range_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        settings(**changes)
