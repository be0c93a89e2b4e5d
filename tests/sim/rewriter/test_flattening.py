# SPDX-License-Identifier: Apache-2.0
from sim.rewriter.netlist import (
    ALWAYS,
    Bits,
    Clause,
    Expression,
    Instance,
    Module,
    Register,
    Run,
    Signal,
    Target,
)
from sim.rewriter.passes import flatten

CLOCK = Bits.whole("clk", 1)


def inner():
    """A module with a register `q` of its input `i`, and two outputs: `q`, and `i` as it is."""
    return Module(
        "inner",
        {"clk": "input", "i": "input", "q": "output", "same": "output"},
        {"clk": Signal(1), "i": Signal(4), "q": Signal(4)},
        {},
        [Register(CLOCK, [Clause(ALWAYS, Target("q"), Expression("bits", (Bits.whole("i", 4),)))])],
        {"q": Bits.whole("q", 4), "same": Bits.whole("i", 4)},
    )


def outer():
    """Two of them in a row."""

    def instance(place, bits):
        outputs = {"q": f"{place}_q", "same": f"{place}_same"}
        return Instance("inner", place, {"clk": CLOCK, "i": bits}, outputs)

    signals = {"clk": Signal(1), "i": Signal(2)}
    signals |= {f"{place}_{port}": Signal(4) for place in "ab" for port in ("q", "same")}
    first = Bits.of([Run("i", 0, 2), Run(None, 0, 2)])
    return Module(
        "outer", {"clk": "input", "i": "input", "o": "output"}, signals, {}, [],
        {"o": Bits.of([Run("b_q", 0, 4), Run("b_same", 0, 4), Run("a_q", 1, 1)])},
        [instance("a", first), instance("b", Bits.whole("a_same", 4))],
    )  # fmt: skip


def test_ports_of_instances_become_the_bits_that_they_are_connected_to():
    flat = flatten({"inner": inner(), "outer": outer()}, "outer", stay=())
    assert not flat.instances
    values = {register.name: register.clauses[0].value.operands for register in flat.registers}
    both = Bits.of([Run("i", 0, 2), Run(None, 0, 2)])
    assert len(values) == 2
    assert set(values.values()) == {(both,)}
    first, second = values
    assert flat.outputs["o"].runs == (
        Run(second, 0, 4), Run("i", 0, 2), Run(None, 0, 2), Run(first, 1, 1)
    )  # fmt: skip
    assert flat.signals.keys() == {"clk", "i", first, second}
    assert all(register.clock == CLOCK for register in flat.registers)


def test_an_instance_may_stay():
    flat = flatten({"inner": inner(), "outer": outer()}, "outer", stay={"inner"})
    assert [instance.place for instance in flat.instances] == ["a", "b"]
    assert flat.instances[1].inputs["i"] == Bits.whole("a_same", 4)
