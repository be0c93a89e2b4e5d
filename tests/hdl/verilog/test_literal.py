# SPDX-License-Identifier: Apache-2.0
import re

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
import pytest

from hdl.verilog.conversion import literal, to_verilog


class Station(wiring.Component):
    """Matches its own position."""

    def __init__(self):
        super().__init__({"position": In(5), "i": In(5), "match": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.match.eq(self.i == self.position)
        return m


class Line(wiring.Component):
    """Stations in a row, each told its position by ``constant``."""

    def __init__(self, constant):
        self.constant = constant
        super().__init__({"i": In(5), "match": Out(3)})

    def elaborate(self, platform):
        m = Module()
        for n in range(3):
            m.submodules[f"station_{n}"] = station = Station()
            m.d.comb += [
                station.i.eq(self.i),
                station.position.eq(self.constant(n, 5)),
                self.match[n].eq(station.match),
            ]
        return m


def modules(verilog):
    return re.findall(r"^module (\S+?)\s?\(", verilog, re.MULTILINE)


def test_copies_told_apart_by_a_literal_share_one_module():
    verilog = to_verilog(Line(literal), name="line")
    assert modules(verilog) == ["line", "station"]
    assert [f".position(5'h0{n})" in verilog for n in range(3)] == [True] * 3


def test_copies_told_apart_by_a_constant_do_not():
    assert len(modules(to_verilog(Line(Const), name="line"))) == 4


@pytest.mark.parametrize(("value", "width"), [(0, 0), (0, 1), (1, 1), (5, 3), (7, 3)])
def test_a_literal_is_its_value(value, width):
    from amaranth.sim import Simulator

    m = Module()
    seen = Signal(width)
    m.d.comb += seen.eq(literal(value, width))
    simulator = Simulator(m)

    async def bench(ctx):
        assert ctx.get(seen) == value

    simulator.add_testbench(bench)
    simulator.run()


def test_a_literal_must_fit():
    with pytest.raises(ValueError, match=r"Literal 8 does not fit 3 bits"):
        literal(8, 3)
    with pytest.raises(ValueError, match=r"Literal must be of an unsigned shape"):
        literal(1, signed(3))
