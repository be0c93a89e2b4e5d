# SPDX-License-Identifier: Apache-2.0
from sim.drivers import Logic
from sim.netlist import Register, Signal
from sim.unread import drop_unread


def logic_of(variables, registers, *, outputs=None, inputs=None):
    """Logic with an output ``o``; everything else is a signal of one bit."""
    names = {*variables, *(clauses[0][1] for clauses in registers), "a", "e"}
    signals = {name: Signal(1) for name in names} | {"o": Signal(1, direction="output")}
    return Logic(
        signals, variables, [Register("clk", clauses) for clauses in registers],
        outputs or {}, inputs or {}, "clk",
    )  # fmt: skip


def test_a_register_that_only_counts_for_itself_goes_with_what_it_needs():
    counter = [("e", "n", "following")]
    logic = logic_of({"following": "n + 1'h1", "x": "~ a"}, [counter], outputs={"o": "x"})
    assert drop_unread(logic) is logic
    assert logic.variables == {"x": "~ a"}
    assert logic.registers == []


def test_whatever_an_output_or_an_instance_depends_on_stays():
    registers = [
        [("enable", "o", "x")],  # an output itself
        [(None, "q", "a")],  # its enable
        [(None, "m[q]", "y")],  # a memory that an instance gets a row of
    ]
    variables = {"enable": "q & e", "x": "~ a", "y": "a ^ e", "unused": "q"}
    logic = drop_unread(logic_of(variables, registers, inputs={("i", "p"): "m[a]"}))
    assert logic.variables == {"enable": "q & e", "x": "~ a", "y": "a ^ e"}
    assert [register.clauses for register in logic.registers] == registers
