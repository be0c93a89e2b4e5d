# SPDX-License-Identifier: Apache-2.0
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from sim.rewriter.netlist import (
    ALWAYS,
    Bits,
    Clause,
    Condition,
    Expression,
    Instance,
    Module,
    Register,
    Run,
    Signal,
    Target,
)
from sim.rewriter.passes import cut_fields, cut_inputs

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
    return Module("m", ports, signals, variables, registers, shown, clock="clk")


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
    cut_fields(found, inputs=False)
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
    cut_fields(found, inputs=False)
    assert set(clauses(found)) == {"r_95_64", "r_63_0", "s_95_64", "s_63_0"}
    assert found.outputs["o1"] == bits(("r_63_0", 8, 8))


def test_a_choice_is_made_for_every_field():
    choice = Expression("choice", (bits(("a", 0, 70)), bits(("s", 0, 1)), bits(("b", 0, 70))))
    found = logic({"c": choice}, [], outputs=[bits(("c", 60, 10)), bits(("c", 0, 60))],
                  a=70, b=70, c=70, s=1)  # fmt: skip
    cut_fields(found, inputs=False)
    assert found.variables == {
        "c_69_60": Expression(
            "choice", (bits(("a", 60, 10)), bits(("s", 0, 1)), bits(("b", 60, 10)))
        ),
        "c_59_0": Expression("choice", (bits(("a", 0, 60)), bits(("s", 0, 1)), bits(("b", 0, 60)))),
    }


def test_what_is_computed_stays_whole():
    total = Expression("$add", (bits(("a", 0, 90)), bits(("a", 0, 90))))
    found = logic({"b": total}, [], outputs=[bits(("b", 0, 41))], a=90, b=90)
    cut_fields(found, inputs=False)
    assert found.variables == {"b": total}


def write(low, width, value):
    """A port that writes bits of the rows of the memory ``m``."""
    target = Target("m", Bits.whole("place", 1), low, width)
    return Register(Bits.whole("clk", 1), [Clause(ENABLE, target, value)])


def test_a_memory_becomes_one_for_each_field():
    row = Expression("row", (Bits.whole("place", 1),), memory="m")
    found = logic(
        {}, [write(0, 90, passed(("b", 0, 30), ("a", 0, 60))), register("r", (ALWAYS, row))],
        outputs=[bits(("r", 30, 60)), bits(("r", 0, 30))], a=60, b=30, r=90, en=1, place=1,
    )  # fmt: skip
    found.signals["m"] = Signal(90, rows=2)
    cut_fields(found, inputs=False)
    assert found.signals["m_89_30"] == Signal(60, rows=2)
    assert found.signals["m_29_0"] == Signal(30, rows=2)
    assert "m" not in found.signals
    parts = [(c.target, c.value) for item in found.registers for c in item.clauses]
    place = Bits.whole("place", 1)
    assert parts == [
        (Target("m_29_0", place, 0, 30), passed(("b", 0, 30))),
        (Target("m_89_30", place, 0, 60), passed(("a", 0, 60))),
        (Target("r_29_0"), Expression("row", (place,), memory="m_29_0")),
        (Target("r_89_30"), Expression("row", (place,), memory="m_89_30")),
    ]


def value_of(found, state):
    """The value of bits."""
    total = place = 0
    for run in found.runs:
        held = run.low if run.name is None else state[run.name] >> run.low
        total |= (held & (1 << run.width) - 1) << place
        place += run.width
    return total


def step(found, state):
    """Do what a clock edge does; return the outputs before it."""
    shown = [value_of(out, state) for out in found.outputs.values()]
    changed = dict(state)
    for clause in [clause for item in found.registers for clause in item.clauses]:
        if not all(value_of(test, state) == high for test, high in clause.condition.tests):
            continue
        target, place = clause.target, value_of(clause.value.operands[0], state)
        value = state[clause.value.memory][place] if clause.value.kind == "row" else place
        if not target.width:
            changed[target.name] = value
            continue
        rows, row = list(changed[target.name]), value_of(target.address, state)
        mask = (1 << target.width) - 1 << target.low
        rows[row] = rows[row] & ~mask | value << target.low
        changed[target.name] = tuple(rows)
    return shown, changed


@given(
    st.lists(st.integers(1, 199), max_size=4), st.lists(st.integers(1, 199), max_size=6),
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 2**200 - 1)),
             min_size=2, max_size=12),
)  # fmt: skip
@settings(max_examples=60, deadline=1_000)
def test_a_memory_that_is_cut_holds_the_same(written, read, inputs):
    """Whatever parts of its rows are written and read."""

    def part(cuts):
        return list(pairwise(sorted({0, 200, *cuts})))

    ports = [write(low, end - low, passed(("a", low, end - low))) for low, end in part(written)]
    row = Expression("row", (Bits.whole("place", 1),), memory="m")
    found = logic(
        {}, [*ports, register("r", (ALWAYS, row))],
        outputs=[bits(("r", low, end - low)) for low, end in part(read)], a=200, r=200, en=1,
        place=1,
    )  # fmt: skip
    found.signals["m"] = Signal(200, rows=2)

    def run():
        states = {
            name: (0, 0) if signal.rows else 0 for name, signal in found.signals.items()
        }  # fmt: skip
        for enable, place, value in inputs:
            states |= {"en": enable, "place": place, "a": value}
            shown, states = step(found, states)
            yield shown

    before = list(run())
    cut_fields(found, inputs=False)
    assert list(run()) == before


def test_an_input_becomes_one_for_each_field():
    found = logic({}, [], outputs=[bits(("i", 60, 30)), bits(("i", 0, 60))], i=90, en=1)
    found.ports |= {"i": "input", "en": "input"}
    cut = cut_fields(found, inputs=True)
    assert cut == {"i": [("i_59_0", 0, 60), ("i_89_60", 60, 30)]}
    assert list(found.ports) == ["o0", "o1", "i_59_0", "i_89_60", "en"]
    assert found.outputs == {"o0": bits(("i_89_60", 0, 30)), "o1": bits(("i_59_0", 0, 60))}

    module = Module("top")
    outside = {"i": bits(("a", 0, 70), ("b", 0, 20)), "en": bits(("c", 0, 1))}
    module.instances = [
        Instance("inner", "one", outside, {}),
        Instance("other", "two", outside, {}),
    ]
    cut_inputs(module, {"inner": cut})
    assert module.instances[0].inputs == {
        "i_59_0": bits(("a", 0, 60)), "i_89_60": bits(("a", 60, 10), ("b", 0, 20)),
        "en": bits(("c", 0, 1)),
    }  # fmt: skip
    assert module.instances[1].inputs == outside


def test_inputs_of_the_top_stay_whole():
    found = logic({}, [], outputs=[bits(("i", 0, 30)), bits(("i", 30, 60))], i=90)
    found.ports["i"] = "input"
    assert cut_fields(found, inputs=False) == {}
    assert found.signals["i"] == Signal(90)
