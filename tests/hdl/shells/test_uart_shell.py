# SPDX-License-Identifier: Apache-2.0
import random

import numpy as np
import pytest

from hdl.manifest import describe, fingerprint
from hdl.shells.uart_shell import UartShell, uart_link_settings
from host.devices.link import HostEndpoint, Timing
from host.protocol.manifest import Manifest
from sim.link.simulation import simulate
from tests.host.small_bundles import (
    BUNDLES,
    FLUSH,
    configuration,
    expected,
    pack,
    random_tuples,
    unpack,
)

PARAMETERS = BUNDLES["plain"]
DIVISOR = 4


def manifest_of(parameters):
    values = describe(parameters, "", verilog_file="")
    values["hash"] = fingerprint(values, "")
    return Manifest.from_dict(values)


class Pins:
    """The host's UART in Python, at the pins of a shell: a byte takes 10 bits, without gaps."""

    def __init__(self, dut, host, *, errors=0.0, seed=0):
        self.dut, self.host = dut, host
        self.cycle = 0
        self.errors, self.random = errors, random.Random(seed)
        self.sending, self.queue = [], b""
        self.bits, self.idle = [], True

    async def bit(self, ctx):
        """Let the time of a bit pass."""
        if not self.sending:
            if not self.queue:
                self.queue = self.host.transmit_frame(self.cycle / 1e6)
            if self.queue:
                byte, self.queue = self.damaged(self.queue[0]), self.queue[1:]
                self.sending = [0, *(byte >> n & 1 for n in range(8)), 1]
        ctx.set(self.dut.rx, self.sending.pop(0) if self.sending else 1)
        for n in range(DIVISOR):
            if n == 1:
                self.listen(ctx.get(self.dut.tx))
            self.cycle += 1
            await ctx.tick()

    def listen(self, level):
        """Take the level of a bit from the shell, which sends in step with this side."""
        if self.bits or not level:
            self.bits.append(level)
        if len(self.bits) == 10:
            assert self.bits[9] == 1
            byte = sum(bit << n for n, bit in enumerate(self.bits[1:9]))
            self.host.receive(bytes((self.damaged(byte),)), self.cycle / 1e6)
            self.bits = []

    def damaged(self, byte):
        return byte ^ (self.random.random() < self.errors) << self.random.randrange(8)


@pytest.mark.long
@pytest.mark.parametrize("errors", [0.0, 0.02])
def test_a_join_passes_the_pins(errors):
    manifest = manifest_of(PARAMETERS)
    rng = np.random.default_rng(1)
    script = [*configuration(PARAMETERS), *random_tuples(PARAMETERS, rng, 9, pace=0), FLUSH]
    words = pack(manifest, script)
    want = expected(PARAMETERS, script)
    dut = UartShell(
        PARAMETERS, digest=manifest.hash, divisor=DIVISOR, host_cycles=100, send_slots=2,
        receive_slots=2, payload_bytes=40, timeout_cycles=6000, heartbeat_cycles=3000,
    )  # fmt: skip
    host = HostEndpoint(9, send_slots=2, timing=Timing(timeout=0.006, heartbeat=0.003))
    sizes = [-(-word.bits // 8) for word in (manifest.input_word, manifest.result_word)]
    data = b"".join(word.tobytes()[: sizes[0]] for word in words)
    got = []

    async def bench(ctx):
        nonlocal data
        pins = Pins(dut, host, errors=errors, seed=2)
        while not host.is_open:
            await pins.bit(ctx)
        assert host.greeting.hash.hex() == manifest.hash
        assert [host.greeting.input_bytes, host.greeting.result_bytes] == sizes
        host.request(0x020)
        while len(got) < len(want) or host.answer() is None:
            data = data[host.sender.offer(data) :]
            part = host.receiver.take(1000)
            for at in range(0, len(part), sizes[1]):
                row = np.zeros(8 * manifest.result_word.columns, np.uint8)
                row[: sizes[1]] = list(part[at : at + sizes[1]])
                got.append(row.view(np.uint64))
            await pins.bit(ctx)
        assert host.answer().data == int.from_bytes(host.greeting.hash[:4], "little")
        assert ctx.get(dut.open)

    simulate(dut, bench, deadline=60_000)
    assert unpack(manifest, np.array(got)) == want
    assert (host.counters().garbled > 0) == (errors > 0)


def test_two_result_streams_are_refused():
    with pytest.raises(ValueError, match="one result stream, not result_streams=2"):
        UartShell(PARAMETERS.with_(result_streams=2), digest="00" * 32, divisor=4)


def test_times_follow_from_the_baud_rate():
    chosen = uart_link_settings(PARAMETERS, digest="00" * 32, divisor=10, host_cycles=1000)
    assert chosen.timeout_cycles == 2 * 8 * 256 * 100 + 1000
    assert chosen.heartbeat_cycles == 8 * 256 * 100 + 500
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        uart_link_settings(PARAMETERS, digest="00", divisor=10)
