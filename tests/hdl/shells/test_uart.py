# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.shells.uart_shell import UartReceiver, UartTransmitter
from sim.link.simulation import simulate

TEXT = bytes((0x00, 0xFF, 0x55, 0xAA, 0x01, 0x80)) + random.Random(1).randbytes(3)


def levels(data, divisor, *, deviation=0.0, phase=0.0, gap=0):
    """Return the level of the pin in every cycle, as a sender with another clock drives it."""
    bits = [1] * 3
    for byte in data:
        bits += [0, *(byte >> n & 1 for n in range(8)), 1, *[1] * gap]
    bits += [1] * 3
    length = divisor * (1 + deviation)
    return [bits[int((n + phase) / length)] for n in range(int(len(bits) * length - phase))]


def received(pin, divisor):
    dut = UartReceiver(divisor=divisor)
    found = bytearray()

    async def bench(ctx):
        for level in pin:
            ctx.set(dut.pin, level)
            if ctx.get(dut.o.valid):
                found.append(ctx.get(dut.o.payload))
            await ctx.tick()

    simulate(dut, bench, deadline=len(pin) + 10)
    return bytes(found)


@pytest.mark.few(3)
@pytest.mark.parametrize("divisor", [4, 5, 9])
@pytest.mark.parametrize("deviation", [-0.02, 0.0, 0.02])
def test_bytes_arrive_without_gaps_whatever_the_phase(divisor, deviation):
    for phase in (0.0, 0.5)[divisor % 2 :]:
        assert received(levels(TEXT, divisor, deviation=deviation, phase=phase), divisor) == TEXT


def test_bytes_arrive_with_gaps():
    assert received(levels(TEXT, 6, gap=3), 6) == TEXT


def test_a_short_low_is_no_byte_and_neither_is_one_without_a_stop_bit():
    divisor = 8
    idle = [1] * 3 * divisor
    spike = [1] * 20 + [0] * 2 + [1] * 100
    no_stop = [0] * 10 * divisor + [1] * 12 * divisor
    pin = [*idle, *spike, *no_stop, *levels(b"ok", divisor)]
    assert received(pin, divisor) == b"ok"


@pytest.mark.parametrize("divisor", [4, 7])
def test_the_transmitter_sends_without_gaps(divisor):
    dut = UartTransmitter(divisor=divisor)
    pin = []

    async def bench(ctx):
        for byte in TEXT:
            ctx.set(dut.i.payload, byte)
            ctx.set(dut.i.valid, 1)
            while True:
                pin.append(ctx.get(dut.pin))
                ready = ctx.get(dut.i.ready)
                await ctx.tick()
                if ready:
                    break
        ctx.set(dut.i.valid, 0)
        for _ in range(11 * divisor):
            pin.append(ctx.get(dut.pin))
            await ctx.tick()

    simulate(dut, bench, deadline=5000)
    want = levels(TEXT, divisor)[3 * divisor :]
    assert pin[0] == 1
    assert pin[1 : 1 + 10 * divisor * len(TEXT)] == want[: 10 * divisor * len(TEXT)]
    assert all(pin[1 + 10 * divisor * len(TEXT) :])


@pytest.mark.parametrize("part", [UartReceiver, UartTransmitter])
def test_too_few_cycles_per_bit_are_refused(part):
    with pytest.raises(ValueError, match="at least 4 cycles per bit, not 3; choose a slower baud"):
        part(divisor=3)
