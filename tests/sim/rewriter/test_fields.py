# SPDX-License-Identifier: Apache-2.0
from sim.rewriter.bits import Bits, Run
from sim.rewriter.fields import cut_fields
from sim.rewriter.logic import Logic
from sim.rewriter.netlist import ALWAYS, Clause, Condition, Expression, Register, Signal, Target

ENABLE = Condition(((Bits.whole("en", 1), True),))


def bits(*runs):
    """Bits, from runs as tuples."""
    return Bits.of(Run(*run) for run in runs)


def passed(*runs):
    """An expression that passes bits on."""
    return Expression("bits", (bits(*runs),))


def register(name, *clauses):
    """A register, from conditions and values."""
    found = [Clause(condition, Target(name), value) for condition, value in clauses]
    return Register(Bits.whole("clk", 1), found)


def logic(variables, registers, *, outputs=(), initial=None, **widths):
    """Logic with these signals and these outputs, which all have a name of their own."""
    signals = {name: Signal(width, (initial or {}).get(name)) for name, width in widths.items()}
    shown = {f"o{n}": found for n, found in enumerate(outputs)}
    ports = dict.fromkeys(shown, "output")
    return Logic(signals, ports, variables, registers, shown, {}, "clk")


def clauses(found):
    """Condition and value of every clause, by register."""
    return {
        item.name: [(clause.condition, clause.value) for clause in item.clauses]
        for item in found.registers
    }


def test_a_wide_structure_that_is_passed_on_becomes_its_fields():
    reset = passed((None, 5 << 30, 90))
    found = logic(
        {}, [register("r", (ENABLE, reset), (ALWAYS, passed(("b", 0, 30), ("a", 0, 60))))],
        outputs=[bits(("r", 30, 60)), bits(("r", 0, 30))], initial={"r": 0xF},
        a=60, b=30, r=90, en=1,
    )  # fmt: skip
    cut_fields(found)
    assert clauses(found) == {
        "r_89_30": [(ENABLE, passed((None, 5, 60))), (ALWAYS, passed(("a", 0, 60)))],
        "r_29_0": [(ENABLE, passed((None, 0, 30))), (ALWAYS, passed(("b", 0, 30)))],
    }
    assert found.outputs == {"o0": bits(("r_89_30", 0, 60)), "o1": bits(("r_29_0", 0, 30))}
    assert found.signals["r_29_0"] == Signal(30, 0xF)
    assert found.signals["r_89_30"] == Signal(60, 0)
    assert "r" not in found.signals


def test_fields_stay_together_up_to_a_machine_word():
    swap = [
        register("r", (ALWAYS, passed(("s", 0, 96)))),
        register("s", (ALWAYS, passed(("r", 0, 96)))),
    ]
    uses = [bits(("r", 0, 8)), bits(("r", 8, 8)), bits(("r", 16, 48)), bits(("r", 64, 32))]
    found = logic({}, swap, outputs=uses, r=96, s=96)
    cut_fields(found)
    assert set(clauses(found)) == {"r_95_64", "r_63_0", "s_95_64", "s_63_0"}
    assert found.outputs["o1"] == bits(("r_63_0", 8, 8))


def test_a_choice_is_made_for_every_field():
    choice = Expression("choice", (bits(("a", 0, 70)), bits(("s", 0, 1)), bits(("b", 0, 70))))
    found = logic({"c": choice}, [], outputs=[bits(("c", 60, 10)), bits(("c", 0, 60))],
                  a=70, b=70, c=70, s=1)  # fmt: skip
    cut_fields(found)
    assert found.variables == {
        "c_69_60": Expression(
            "choice", (bits(("a", 60, 10)), bits(("s", 0, 1)), bits(("b", 60, 10)))
        ),
        "c_59_0": Expression("choice", (bits(("a", 0, 60)), bits(("s", 0, 1)), bits(("b", 0, 60)))),
    }


def test_what_is_computed_stays_whole():
    total = Expression("$add", (bits(("a", 0, 90)), bits(("a", 0, 90))))
    row = Expression("row", (bits(("a", 0, 4)),), memory="m")
    found = logic({"b": total}, [register("r", (ALWAYS, row))],
                  outputs=[bits(("b", 0, 41)), bits(("r", 0, 41))], a=90, b=90, r=90)  # fmt: skip
    cut_fields(found)
    assert found.variables == {"b": total}
    assert set(clauses(found)) == {"r"}
