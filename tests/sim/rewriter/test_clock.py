# SPDX-License-Identifier: Apache-2.0
import pytest

from sim.rewriter import UnknownNetlist
from sim.rewriter.netlist import ALWAYS, Bits, Clause, Expression, Module, Register, Signal, Target
from sim.rewriter.passes import find_clock


def module(*clocks):
    """A module whose registers have these clocks; the first one is an output."""
    value = Expression("bits", (Bits.whole("i", 4),))
    registers = [
        Register(Bits.whole(clock, 1), [Clause(ALWAYS, Target(f"q{n}"), value)])
        for n, clock in enumerate(clocks)
    ]
    signals = {"i": Signal(4)} | {name: Signal(1) for name in clocks}
    ports = {"clk": "input", "other": "input", "i": "input", "q0": "output", "o": "output"}
    outputs = {"q0": Bits.whole("q0", 4), "o": Bits.whole("i", 4)}
    return Module("m", ports, signals, {}, registers, outputs)


def test_an_output_that_is_a_register_is_no_other_bits():
    found = module("clk")
    find_clock(found)
    assert found.clock == "clk"
    assert found.outputs == {"o": Bits.whole("i", 4)}


@pytest.mark.parametrize("clocks", [("clk", "other"), ("computed",), ()])
def test_a_second_clock_is_refused(clocks):
    with pytest.raises(UnknownNetlist, match="clocks"):
        find_clock(module(*clocks))
