# SPDX-License-Identifier: Apache-2.0
from amaranth import *
from amaranth.sim import Simulator
import numpy as np
import pytest

from hdl.ethernet.settings import EthernetSettings
from hdl.shells.linked_accelerator import EthernetShell, ethernet_link_settings
from host.devices.link import HostEndpoint, Timing
from host.devices.link.transport import Numbering
from sim.ethernet.frames import Address, datagram_frame, on_the_line, read_datagram
from tests.hdl.ethernet.phy_line import PhyLine
from tests.hdl.shells.test_uart_shell import PARAMETERS, manifest_of
from tests.host.small_bundles import (
    FLUSH,
    configuration,
    expected,
    pack,
    random_tuples,
    unpack,
)

ETHERNET = EthernetSettings(idle_cycles=30, receive_bytes=2048)
BOARD = Address(ETHERNET.mac_bytes, ETHERNET.ip_bytes, ETHERNET.port)
HOST = Address(b"\x02\x11\x22\x33\x44\x55", bytes((192, 168, 1, 7)), 50001)


@pytest.mark.parametrize("period", [20e-9, pytest.param(7e-9, marks=pytest.mark.long)])
def test_a_join_passes_the_pins(period):
    """The link's clock is slower or faster than that of the PHY."""
    manifest = manifest_of(PARAMETERS)
    rng = np.random.default_rng(1)
    script = [*configuration(PARAMETERS), *random_tuples(PARAMETERS, rng, 6, pace=0), FLUSH]
    want = expected(PARAMETERS, script)
    dut = EthernetShell(
        PARAMETERS, digest=manifest.hash, ethernet=ETHERNET, host_cycles=100, send_slots=2,
        receive_slots=2, payload_bytes=40,
    )  # fmt: skip
    host = HostEndpoint(9, send_slots=2, timing=Timing(timeout=1e-3, heartbeat=5e-4))
    size, result = (-(-w.bits // 8) for w in (manifest.input_word, manifest.result_word))
    data = b"".join(word.tobytes()[:size] for word in pack(manifest, script))
    got, numbering, back = bytearray(), Numbering(), Numbering()
    m = Module()
    m.domains += [ClockDomain("sync"), ClockDomain("ethernet")]
    m.submodules.dut = dut
    simulator = Simulator(m)
    simulator.add_clock(period)
    simulator.add_clock(8e-9, domain="ethernet")
    line = PhyLine(dut.gmii)

    async def bench(ctx):
        nonlocal data
        while not host.is_open or len(got) < len(want) * result:
            now = line.cycle * 8e-9
            assert line.cycle < 20_000, (host.is_open, len(got))
            if host.is_open:
                data = data[host.sender.offer(data) :]
                got.extend(host.receiver.take(1000))
            if not line.to_board and (sent := host.transmit(now, 200)):
                line.put(on_the_line(datagram_frame(HOST, BOARD, numbering.pack(sent))))
            line.drive(ctx)
            for frame in line.frames:
                found = read_datagram(frame)
                assert (found.source, found.target) == (BOARD, HOST)
                host.receive(back.unpack(found.data), now)
            line.frames.clear()
            await ctx.tick("ethernet")
        assert ctx.get(dut.open)

    simulator.add_testbench(bench)
    simulator.run()
    assert host.greeting.hash.hex() == manifest.hash
    rows = np.zeros((len(want), 8 * manifest.result_word.columns), np.uint8)
    rows[:, :result] = np.frombuffer(bytes(got), np.uint8).reshape(-1, result)
    assert unpack(manifest, rows.view(np.uint64)) == want
    counters = host.counters()
    assert (counters.garbled, counters.repeated) == (0, 0)


def test_windows_are_of_32_frames_and_times_follow_from_a_byte_per_cycle():
    chosen = ethernet_link_settings(PARAMETERS, digest="00" * 32, host_cycles=1000)
    assert (chosen.receive_slots, chosen.send_slots) == (32, 32)
    assert chosen.timeout_cycles == 2 * 32 * 256 + 1000


def test_two_result_streams_are_refused():
    with pytest.raises(ValueError, match="An Ethernet shell needs .* not result_streams=2"):
        EthernetShell(PARAMETERS.with_(result_streams=2), digest="00" * 32)
