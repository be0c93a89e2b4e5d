# SPDX-License-Identifier: Apache-2.0
from types import SimpleNamespace

from amaranth import *
from amaranth.hdl import Fragment, Instance, IOPort
from amaranth.lib import io
from amaranth.sim import Simulator
import pytest

from hdl.ethernet.phy import DoubleRateInput, Rgmii, delay_taps

PERIOD = 8e-9
NAMES = {"rx_clk": ("i", 1), "rx_ctrl": ("i", 1), "rx_data": ("i", 4),
         "tx_clk": ("o", 1), "tx_ctrl": ("o", 1), "tx_data": ("o", 4)}  # fmt: skip


def pads():
    return SimpleNamespace(
        **{name: io.SimulationPort(way, width, name=name) for name, (way, width) in NAMES.items()}
    )


def test_bytes_pass_at_both_edges_of_the_clock():
    """What is sent comes back to the receiving pins three quarters of a cycle later.

    So the low half, which is sent behind a rising edge, is there at the next rising edge, as a PHY
    with a delay in its clock sends it.
    """
    port = pads()
    dut = Rgmii(port)
    m = Module()
    m.domains.ethernet = ClockDomain("ethernet")
    m.submodules.dut = dut
    simulator = Simulator(m)
    simulator.add_clock(PERIOD, domain="ethernet")
    bytes_sent = [0x01, 0xF0, 0x5A, 0xFF, 0x00, 0x3C]
    sent = [(byte, 1, error) for byte, error in zip(bytes_sent, [0, 0, 1, 0, 1, 0], strict=True)]
    sent += [(0, 0, 0), (0x77, 1, 0), (0, 0, 0)]
    got, halves = [], []

    async def drive(ctx):
        gmii = dut.gmii
        for byte, enable, error in [*sent, *[(0, 0, 0)] * 6]:
            ctx.set(gmii.tx_data, byte)
            ctx.set(gmii.tx_enable, enable)
            ctx.set(gmii.tx_error, error)
            *_, data, valid, damaged = await ctx.tick("ethernet").sample(
                gmii.rx_data, gmii.rx_valid, gmii.rx_error
            )
            got.append((data, valid, damaged))

    async def loop(ctx):
        await ctx.delay(PERIOD / 4)  # the first edge comes after half a cycle
        for _ in range(2 * len(sent) + 8):
            halves.append(
                [ctx.get(port.tx_clk.o), ctx.get(port.tx_data.o), ctx.get(port.tx_ctrl.o)]
            )
            _, data, control = halves[-2] if len(halves) > 1 else (0, 0, 0)
            ctx.set(port.rx_data.i, data)
            ctx.set(port.rx_ctrl.i, control)
            await ctx.delay(PERIOD / 2)

    simulator.add_testbench(drive)
    simulator.add_testbench(loop, background=True)
    simulator.run()
    start = got.index(sent[0])
    assert got[start : start + len(sent)] == sent
    # On the pins: the low half while the clock is high, the high half while it is low.
    first = next(n for n, (clock, data, _) in enumerate(halves) if clock and data == 1)
    assert [data for _, data, _ in halves[first : first + 4]] == [0x1, 0x0, 0x0, 0xF]
    assert [clock for clock, *_ in halves[first : first + 4]] == [1, 0, 1, 0]


def cells(fragment):
    """Yield primitives of a design with their parameters."""
    if isinstance(fragment, Instance):
        yield fragment.type, dict(fragment.parameters)
    for child, *_ in fragment.subfragments:
        yield from cells(child)


def pad_ports():
    return SimpleNamespace(
        **{name: io.SingleEndedPort(IOPort(width, name=name), direction=way)
           for name, (way, width) in NAMES.items()}
    )  # fmt: skip


@pytest.mark.parametrize(("tx_delay", "rx_delay", "taps"), [(2000, 0, [80]), (0, 1500, [60] * 5)])
def test_an_ecp5_has_a_primitive_at_each_pin_and_the_delays(tx_delay, rx_delay, taps):
    m = Module()
    m.domains.ethernet = ClockDomain("ethernet")
    m.submodules.dut = Rgmii(pad_ports(), tx_delay=tx_delay, rx_delay=rx_delay)
    found = list(cells(Fragment.get(m, SimpleNamespace(device="LFE5UM5G-45F"))))
    kinds = [kind for kind, _ in found]
    assert (kinds.count("IDDRX1F"), kinds.count("ODDRX1F")) == (5, 6)
    delays = [values["DEL_VALUE"] for kind, values in found if kind == "DELAYG"]
    assert delays == taps


def test_a_delay_line_has_an_end():
    assert delay_taps(127 * 25) == 127
    with pytest.raises(ValueError, match="must be 0 to 3175 ps, not 3200 ps; delay the pin on"):
        DoubleRateInput(pads().rx_data, delay=3200)
