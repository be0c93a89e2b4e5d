# SPDX-License-Identifier: Apache-2.0
"""Paths between clocks: every one is found, and none but the declared ones passes."""

import json
import re

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
import pytest

from hdl.crossings import Crossing, UnlistedCrossing, inspect_crossings
from hdl.presets import PRESETS
from hdl.shells.axi import AxiOptions, AxiShell
from hdl.shells.bus_crossing import BusCrossing
from hdl.shells.linked_accelerator import EthernetShell
from hdl.shells.uart_shell import UartReceiver, UartShell
from hdl.streams.queues import StreamCrossing
from hdl.verilog.conversion import to_netlist

DIGEST = "ab" * 32


def inspect(make, clock_of):
    """Inspect what `make` returns, which is elaborated twice."""
    _, netlist = to_netlist(make(), name="top")
    return inspect_crossings(
        make(), json.loads(netlist)["modules"], name="top", clock_of=clock_of
    )  # fmt: skip


class Design(wiring.Component):
    """Registers of the clocks `a` and `b`, and a way between them."""

    def __init__(self, build, crossings=()):
        self.build, self.crossings = build, crossings
        super().__init__({"i": In(4), "o": Out(4)})

    def elaborate(self, platform):
        m = Module()
        taken = Signal(4)
        m.d.a += taken.eq(self.i)
        self.build(m, taken, self.o)
        return m


def of_design(port):
    return "a_clk" if port in ("i", "a_rst") else "b_clk"


def straight(m, taken, o):
    m.d.b += o.eq(taken)


def synchronized(m, taken, o):
    m.submodules.synchronizer = FFSynchronizer(taken[0], o[0], o_domain="b")


def behind_logic(m, taken, o):
    m.submodules.synchronizer = FFSynchronizer(taken[0] ^ taken[1], o[0], o_domain="b")


def of_several_bits(m, taken, o):
    m.submodules.synchronizer = FFSynchronizer(taken, o, o_domain="b")


def read_twice(m, taken, o):
    first, second = Signal(name="stage0"), Signal()
    m.d.b += [first.eq(taken[0]), second.eq(first), o[1].eq(first & ~o[1])]
    m.d.comb += o[0].eq(second)


def to_the_port(m, taken, o):
    m.d.comb += o.eq(taken + 1)


def as_an_enable(m, taken, o):
    with m.If(taken[3]):
        m.d.b += o.eq(o + 1)


def through_a_memory(m, taken, o):
    m.submodules.memory = memory = Memory(shape=4, depth=4, init=[])
    write, read = memory.write_port(domain="a"), memory.read_port(domain="b")
    m.d.comb += [write.data.eq(taken), write.addr.eq(taken), write.en.eq(1)]
    m.d.comb += [read.addr.eq(o), o.eq(read.data)]


def counted(m, taken, o):
    synchronized(m, taken, o)
    m.d.b += o[1].eq(~o[1])


LEVEL = (Crossing("level", ("synchronizer/stage0",), ("taken",)),)
HELD = (Crossing("held", ("o",), ("taken",)),)


@pytest.mark.parametrize(
    "build",
    [
        straight,
        synchronized,
        to_the_port,
        as_an_enable,
        through_a_memory,
    ],
)
def test_a_path_that_nobody_declares_is_found(build):
    found = inspect(lambda: Design(build), of_design)
    assert found.unlisted
    assert not found.listed
    with pytest.raises(UnlistedCrossing, match=r"\(a_clk\) is read by .*\(b_clk\).*`crossings`"):
        found.check()


@pytest.mark.parametrize(("build", "declared"), [(straight, HELD), (synchronized, LEVEL)])
def test_a_declared_path_passes(build, declared):
    found = inspect(lambda: Design(build, declared), of_design)
    found.check()
    (listed,) = found.listed
    assert (listed.source_clock, listed.target_clock) == ("a_clk", "b_clk")
    assert listed.sources == ("taken",)


@pytest.mark.parametrize(
    ("build", "declared", "fault"),
    [
        (behind_logic, LEVEL, "logic in front of a synchronizer"),
        (of_several_bits, LEVEL, "4 paths, where a level has one bit"),
        (read_twice, (Crossing("level", ("stage0",), ("taken",)),), "several readers"),
        (counted, (*LEVEL, Crossing("held", ("taken",), ("o",))), "no path is there"),
    ],
)
def test_a_crossing_that_is_not_what_it_says_is_a_fault(build, declared, fault):
    found = inspect(lambda: Design(build, declared), of_design)
    assert any(fault in each for each in found.faults), found
    with pytest.raises(UnlistedCrossing):
        found.check()


def test_a_name_that_is_not_there_is_refused():
    declared = (Crossing("held", ("gone",), ("taken",)),)
    with pytest.raises(UnlistedCrossing, match="crossing of gone, and there are 0"):
        inspect(lambda: Design(straight, declared), of_design)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="level, gray, held, rows, reset, not 'wire'"):
        Crossing("wire", ("o",))


def test_a_design_of_one_clock_has_no_crossing():
    found = inspect(lambda: Design(lambda m, taken, o: m.d.comb.__iadd__(o.eq(taken))),
                    lambda port: "a_clk")  # fmt: skip
    assert found.clocks == ("a_clk",)
    assert found.listed + found.unlisted + found.faults == ()


@pytest.mark.parametrize(
    ("make", "clock_of", "kinds"),
    [
        (
            lambda: BusCrossing(patience=9),
            lambda port: "bus_clk" if port.startswith(("i_", "bus")) else "clk",
            ["level", "level", "held", "held"],
        ),
        (
            lambda: StreamCrossing(8, i_domain="a", o_domain="b", depth=4),
            lambda port: "a_clk" if port.startswith(("i_", "a_")) else "b_clk",
            ["gray", "gray", "rows", "reset"],
        ),
    ],
)
def test_a_component_between_clocks_declares_every_path(make, clock_of, kinds):
    found = inspect(make, clock_of)
    found.check()
    assert len(found.listed) == len(kinds)
    for listed in found.listed:
        assert bool(listed.stages) == (listed.kind.synchronized or listed.kind.asynchronous)
        for stage in listed.stages:
            assert re.search(r"/stage[01]$", stage)


def test_a_component_without_its_declaration_is_found(monkeypatch):
    for component, clock_of in [
        (lambda: BusCrossing(patience=9), lambda port: "bus_clk" if port[0] in "ib" else "clk"),
        (
            lambda: StreamCrossing(8, i_domain="a", o_domain="b", depth=4),
            lambda port: "a_clk" if port.startswith(("i_", "a_")) else "b_clk",
        ),
    ]:
        kind = type(component())
        for n in range(len(kind.crossings)):
            with monkeypatch.context() as patch:
                patch.setattr(kind, "crossings", kind.crossings[:n] + kind.crossings[n + 1 :])
                assert inspect(component, clock_of).unlisted


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "crossings"),
    [
        (lambda p: AxiShell(p, digest=DIGEST, is_whole=True,
                            options=AxiOptions(bus_clock="separate", inputs=2)), 4),
        (lambda p: AxiShell(p, digest=DIGEST, is_whole=True,
                            options=AxiOptions(bus_clock="separate", names="vitis")), 4),
        (lambda p: AxiShell(p, digest=DIGEST, is_whole=True), 0),
        (lambda p: UartShell(p, digest=DIGEST, divisor=25), 1),
        (lambda p: EthernetShell(p, digest=DIGEST), 8),
    ],
)  # fmt: skip
def test_no_shell_has_a_path_that_is_not_listed(make, crossings):
    shell = make(PRESETS["tiny"])
    found = inspect(lambda: shell, shell.clock_of)
    found.check()
    assert len(found.listed) == crossings


def test_the_line_of_a_uart_is_of_no_clock():
    class Receiver(wiring.Component):
        rx: In(1)
        o: Out(9)

        def elaborate(self, platform):
            m = Module()
            m.submodules.receiver = receiver = UartReceiver(divisor=8)
            m.d.comb += [
                receiver.pin.eq(self.rx),
                self.o.eq(Cat(receiver.o.payload, receiver.o.valid)),
            ]
            return m

    found = inspect(Receiver, lambda port: None if port == "rx" else "clk")
    found.check()
    (listed,) = found.listed
    assert (listed.source_clock, listed.sources) == (None, ("rx",))
