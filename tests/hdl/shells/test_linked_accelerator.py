# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from hdl.shells.linked_accelerator import LinkedAccelerator, shell_link_settings
from host.devices.link import HostEndpoint, Timing
from sim.link.simulation import simulate
from tests.hdl.shells.test_uart_shell import PARAMETERS, manifest_of
from tests.host.small_bundles import (
    FLUSH,
    configuration,
    expected,
    pack,
    random_tuples,
    unpack,
)

SLOTS = {"send_slots": 2, "receive_slots": 2, "payload_bytes": 40}


@pytest.mark.parametrize("pause", [1, pytest.param(3, marks=pytest.mark.long)])
def test_a_join_passes_a_byte_stream(pause):
    """The line takes a byte in every cycle, or in every third one."""
    manifest = manifest_of(PARAMETERS)
    rng = np.random.default_rng(pause)
    script = [*configuration(PARAMETERS), *random_tuples(PARAMETERS, rng, 9, pace=0), FLUSH]
    want = expected(PARAMETERS, script)
    chosen = shell_link_settings(
        PARAMETERS, digest=manifest.hash, byte_cycles=pause, host_cycles=100, **SLOTS
    )
    dut = LinkedAccelerator(PARAMETERS, digest=manifest.hash, settings=chosen, shell="A shell")
    host = HostEndpoint(9, send_slots=2, timing=Timing(timeout=0.006, heartbeat=0.003))
    size = -(-manifest.input_word.bits // 8)
    data = b"".join(word.tobytes()[:size] for word in pack(manifest, script))
    result = -(-manifest.result_word.bits // 8)
    got = bytearray()

    async def bench(ctx):
        nonlocal data
        cycle, queue = 0, b""
        assert not ctx.get(dut.open)
        while not host.is_open or len(got) < len(want) * result:
            if host.is_open:
                data = data[host.sender.offer(data) :]
                got.extend(host.receiver.take(1000))
            slot = cycle % pause == 0
            if not queue:
                queue = host.transmit_frame(cycle / 1e6)
            ctx.set(dut.i.valid, slot and bool(queue))
            ctx.set(dut.i.payload, queue[0] if queue else 0)
            queue = queue[slot:]
            ctx.set(dut.o.ready, slot)
            if slot and ctx.get(dut.o.valid):
                host.receive(bytes((ctx.get(dut.o.payload),)), cycle / 1e6)
            cycle += 1
            await ctx.tick()
        assert ctx.get(dut.open)

    simulate(dut, bench, deadline=10_000)
    assert host.greeting.hash.hex() == manifest.hash
    rows = np.zeros((len(want), 8 * manifest.result_word.columns), np.uint8)
    rows[:, :result] = np.frombuffer(bytes(got), np.uint8).reshape(-1, result)
    assert unpack(manifest, rows.view(np.uint64)) == want


def test_times_follow_from_the_rate_of_the_line():
    chosen = shell_link_settings(
        PARAMETERS, digest="00" * 32, byte_cycles=3, host_cycles=1000, receive_slots=32
    )
    assert chosen.timeout_cycles == 2 * 32 * 256 * 3 + 1000
    assert chosen.heartbeat_cycles == 32 * 256 * 3 + 500
    own = shell_link_settings(
        PARAMETERS, digest="00" * 32, byte_cycles=3, host_cycles=1000, timeout_cycles=77
    )
    assert own.timeout_cycles == 77


def test_a_shell_names_itself_when_it_refuses_an_accelerator():
    chosen = shell_link_settings(PARAMETERS, digest="00" * 32, byte_cycles=1, host_cycles=1)
    with pytest.raises(ValueError, match="A tin can needs an accelerator with one result stream"):
        LinkedAccelerator(
            PARAMETERS.with_(result_streams=2), digest="00" * 32, settings=chosen, shell="A tin can"
        )
