# SPDX-License-Identifier: Apache-2.0
from sim.fields import cut_fields
from sim.netlist import Register, Signal


def signals(**widths):
    return {name: Signal(width) for name, width in widths.items()}


def test_a_wide_structure_that_is_passed_on_becomes_its_fields():
    names = signals(a=60, b=30, c=90, r=90, en=1, x=60, y=30)
    names["r"].initial = "90'h0000000000000000000000f"
    variables = {"c": "{ a, b }", "x": "r[89:30]", "y": "r[29:0]"}
    registers = [Register("clk", [("en", "r", "90'h0"), (None, "r", "c")])]
    pieces = cut_fields(names, variables, registers, [])
    assert pieces == {
        "c": [(89, 30, "c_89_30"), (29, 0, "c_29_0")],
        "r": [(89, 30, "r_89_30"), (29, 0, "r_29_0")],
    }
    assert variables["c_89_30"] == "a"
    assert variables["c_29_0"] == "b"
    assert [register.clauses for register in registers] == [
        [("en", "r_89_30", "60'h0"), (None, "r_89_30", "c[89:30]")],
        [("en", "r_29_0", "30'h0"), (None, "r_29_0", "c[29:0]")],
    ]
    assert names["r_29_0"].initial == "30'hf"


def test_fields_stay_together_up_to_a_machine_word():
    names = signals(r=96, s=96)
    registers = [Register("clk", [(None, "r", "s")]), Register("clk", [(None, "s", "r")])]
    uses = ["r[7:0]", "r[15:8]", "r[63:16]", "r[95:64]"]
    pieces = cut_fields(names, {}, registers, uses)
    assert [(high, low) for high, low, _ in pieces["r"]] == [(95, 64), (63, 0)]
    assert [(high, low) for high, low, _ in pieces["s"]] == [(95, 64), (63, 0)]


def test_a_choice_is_made_for_every_field():
    names = signals(a=70, b=70, c=70, s=1)
    registers = [Register("clk", [(None, "a", "c")]), Register("clk", [(None, "b", "c")])]
    variables = {"c": "s ? a : b"}
    cut_fields(names, variables, registers, ["a[69:60]", "a[59:0]"])
    assert variables == {"c_69_60": "s ? a[69:60] : b[69:60]", "c_59_0": "s ? a[59:0] : b[59:0]"}


def test_what_is_computed_stays_whole():
    names = signals(a=90, b=90)
    variables = {"b": "a + a"}
    assert cut_fields(names, variables, [], ["b[40:0]"]) == {}
    assert variables == {"b": "a + a"}
