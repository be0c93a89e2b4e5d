# SPDX-License-Identifier: Apache-2.0
import json

from amaranth import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
import pytest

from hdl.verilog.conversion import to_netlist
from sim.rewriter import UnknownNetlist
from sim.rewriter.netlist import (
    ALWAYS,
    Bits,
    Clause,
    Condition,
    Expression,
    Register,
    Run,
    Signal,
    Target,
    read_netlist,
)


class Inner(wiring.Component):
    """A register with an enable."""

    enable: In(1)
    i: In(4)
    o: Out(4, init=5)

    def elaborate(self, platform):
        m = Module()
        with m.If(self.enable):
            m.d.sync += self.o.eq(self.i)
        return m


class Outer(wiring.Component):
    """A memory with two enables, and an instance of ``Inner``."""

    i: In(8)
    enables: In(2)
    o: Out(4)
    row: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.rows = rows = memory.Memory(shape=8, depth=16, init=[])
        write, read = rows.write_port(granularity=4), rows.read_port()
        m.submodules.inner = inner = Inner()
        m.d.comb += [
            write.addr.eq(self.i), write.data.eq(~self.i), write.en.eq(self.enables),
            read.addr.eq(self.i[4:]), self.row.eq(read.data),
            inner.enable.eq(self.i.any()), inner.i.eq(self.i ^ inner.o), self.o.eq(inner.o),
        ]  # fmt: skip
        return m


@pytest.fixture(scope="module")
def netlist():
    """The netlist of ``Outer``."""
    return to_netlist(Outer(), name="outer")[1]


@pytest.fixture(scope="module")
def modules(netlist):
    """Its modules."""
    return read_netlist(netlist)


def bits(*runs):
    """Bits, from runs as tuples."""
    return Bits.of(Run(*run) for run in runs)


def test_a_register_has_a_clause_for_its_reset_and_one_for_its_enable(modules):
    inner = modules["inner"]
    assert inner.ports == {"clk": "input", "rst": "input", "enable": "input", "i": "input",
                           "o": "output"}  # fmt: skip
    assert inner.signals["o"] == Signal(4, initial=5)
    reset = Clause(
        Condition(((Bits.whole("rst", 1), True),)), Target("o"),
        Expression("bits", (Bits.constant(5, 4),)),
    )  # fmt: skip
    update = Clause(
        Condition(((Bits.whole("enable", 1), True),)), Target("o"),
        Expression("bits", (Bits.whole("i", 4),)),
    )  # fmt: skip
    assert inner.registers == [Register(Bits.whole("clk", 1), [reset, update])]
    assert inner.outputs == {"o": Bits.whole("o", 4)}


def test_an_instance_drives_a_signal_with_each_output(modules):
    (instance,) = modules["outer"].instances
    assert instance.kind == "inner"
    (name,) = instance.inputs["i"].names
    assert instance.inputs["i"] == Bits.whole(name, 4)
    operands = bits(("i", 0, 4)), Bits.whole("inner_o", 4)
    assert modules["outer"].variables[name] == Expression("$xor", operands)
    assert instance.outputs == {"o": "inner_o"}
    assert modules["outer"].outputs["o"] == Bits.whole("inner_o", 4)


def test_ports_of_memories_are_registers(modules):
    outer = modules["outer"]
    (memory_name,) = [name for name, signal in outer.signals.items() if signal.rows]
    assert outer.signals[memory_name] == Signal(8, rows=16)
    clauses = [clause for register in outer.registers for clause in register.clauses]
    read, *writes = sorted(clauses, key=lambda clause: (clause.target.width, clause.target.low))
    assert read.condition == ALWAYS
    assert read.value == Expression("row", (bits(("i", 4, 4)),), memory=memory_name)
    address = bits(("i", 0, 4))
    assert [clause.target for clause in writes] == [
        Target(memory_name, address, 0, 4), Target(memory_name, address, 4, 4)
    ]  # fmt: skip
    assert [clause.condition for clause in writes] == [
        Condition(((bits(("enables", place, 1)), True),)) for place in (0, 1)
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "$div"}, r"a cell of type \$div"),
        ({"type": "$_DLATCH_"}, "a cell of type"),
    ],
)
def test_other_cells_are_refused(netlist, change, message):
    document = json.loads(netlist)
    for cell in document["modules"]["outer"]["cells"].values():
        if cell["type"] == "$not":
            cell.update(change)
    with pytest.raises(UnknownNetlist, match=message):
        read_netlist(json.dumps(document))


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("RD_TRANSPARENCY_MASK", "1"), ("INIT", "1" * 128), ("WR_CLK_POLARITY", "0")],
)
def test_other_memories_are_refused(netlist, parameter, value):
    document = json.loads(netlist)
    for cell in document["modules"]["outer"]["cells"].values():
        if cell["type"] == "$mem_v2":
            cell["parameters"][parameter] = value
    with pytest.raises(UnknownNetlist):
        read_netlist(json.dumps(document))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"modules": {"m": {}}}'])
def test_what_is_no_netlist_is_refused(text):
    with pytest.raises(UnknownNetlist, match="no netlist of Yosys"):
        read_netlist(text)
