# SPDX-License-Identifier: Apache-2.0
import pytest

from sim.drivers import single_drivers
from sim.netlist import Module, Register, Signal, UnknownVerilog


def module(assignments, registers, **widths):
    """A module with an input `clk`, an output `o`, and these signals."""
    signals = {"clk": Signal(1, "input"), "o": Signal(widths.pop("o", 1), "output")}
    signals |= {name: Signal(width) for name, width in widths.items()}
    return Module("m", ["clk", "o"], signals, assignments, registers)


def test_bits_with_drivers_of_their_own_become_variables():
    clocked = [Register("clk", [(None, "r", "a")])]
    pieces = [("a[3:2]", "b"), ("a[1:0]", "c")]
    logic = single_drivers(module([*pieces, ("o", "a[2]")], clocked, a=4, b=2, c=2, r=4), {})
    assert logic.variables == {"a_3_2": "b", "a_1_0": "c"}
    assert logic.registers[0].clauses == [(None, "r", "{ a_3_2, a_1_0 }")]
    assert logic.outputs == {"o": "a_3_2[0:0]"}


def test_several_targets_of_one_expression_take_their_parts():
    clocked = [Register("clk", [(None, "r", "a")])]
    logic = single_drivers(module([("{ a, b }", "r + r"), ("o", "b")], clocked, a=3, b=1, r=4), {})
    assert logic.variables == {"joined": "r + r", "a": "joined[3:1]", "b": "joined[0:0]"}


def test_registers_keep_the_initial_value_of_their_part():
    clocked = [
        Register("clk", [(None, "r[3:2]", "2'h0")]),
        Register("clk", [(None, "r[1:0]", "o")]),
    ]
    found = module([("o", "2'h1")], clocked, r=4, o=2)
    found.signals["r"].initial = "4'h9"
    logic = single_drivers(found, {})
    assert logic.signals["r_3_2"].initial == "2'h2"
    assert logic.signals["r_1_0"].initial == "2'h1"


def test_other_names_of_a_signal_disappear():
    clocked = [Register("local", [(None, "r", "a")])]
    logic = single_drivers(module([("local", "clk"), ("o", "r")], clocked, local=1, a=1, r=1), {})
    assert logic.clock == "clk"
    assert not logic.variables


def test_a_second_clock_is_refused():
    clocked = [Register("clk", [(None, "r", "o")]), Register("other", [(None, "s", "o")])]
    with pytest.raises(UnknownVerilog):
        single_drivers(module([], clocked, other=1, r=1, s=1), {})
