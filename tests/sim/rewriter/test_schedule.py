# SPDX-License-Identifier: Apache-2.0
from sim.rewriter.netlist import (
    ALWAYS,
    Bits,
    Clause,
    Condition,
    Expression,
    Module,
    Register,
    Signal,
    Target,
)
from sim.rewriter.process import Copy, Group, Schedule


def one(name):
    """A signal."""
    return Bits.whole(name, 4)


def when(name):
    """The condition that a signal is high."""
    return Condition(((one(name), True),)) if name else ALWAYS


def computed(*names):
    """Something that is computed from signals."""
    return Expression("$add", tuple(map(one, names)))


def clause(condition, name, *read):
    """Under a condition, a register gets what is computed from signals."""
    return Clause(when(condition), Target(name), computed(*read))


def schedule(variables, updates, *, visible=(), rows=()):
    """The schedule of registers with these clauses."""
    registers = [Register(one("clk"), clauses) for clauses in updates]
    names = {*variables, *(register.name for register in registers)}
    signals = {name: Signal(4, rows=8 if name in rows else None) for name in names}
    module = Module("m", {}, signals, variables, registers, clock="clk")
    return Schedule(module, set(visible))


def assigned(found):
    """Names of registers in the order in which they are assigned."""
    groups = [step for step in found.steps if isinstance(step, Group)]
    return [clause.target.name for group in groups for some in group.clauses for clause in some]


def test_a_register_is_assigned_after_what_reads_it():
    found = schedule({}, [[clause(None, "a", "i")], [clause(None, "b", "a")],
                          [clause(None, "c", "b")]])  # fmt: skip
    assert assigned(found) == ["c", "b", "a"]


def test_registers_that_swap_need_one_copy():
    found = schedule({}, [[clause(None, "a", "b")], [clause(None, "b", "a")]])
    assert sum(isinstance(step, Copy) for step in found.steps) == 1


def test_visible_registers_need_no_order():
    swap = [[clause(None, "a", "b")], [clause(None, "b", "a")]]
    assert not schedule({}, swap, visible=["a", "b"]).copies


def test_variables_are_computed_before_what_they_read_changes():
    found = schedule({"v": computed("a", "b")}, [[clause(None, "a", "i")], [clause(None, "b", "j")],
                                                 [clause(None, "c", "v")]])  # fmt: skip
    assert found.steps.index("v") == 0
    assert not found.copies


def test_what_one_condition_needs_is_computed_under_it():
    variables = {"v": computed("i", "j"), "w": computed("i", "k")}
    found = schedule(variables, [[clause("e", "a", "v")], [clause("e", "b", "w")],
                                 [clause("f", "c", "w")]])  # fmt: skip
    groups = {step.conditions: step for step in found.steps if isinstance(step, Group)}
    assert groups[when("e"),].inner == [["v"]]
    assert found.steps.count("w") == 1


def test_a_memory_is_written_after_it_is_read():
    write = Clause(when("e"), Target("m", one("i"), 0, 4), computed("j"))
    read = Clause(ALWAYS, Target("r"), Expression("row", (one("k"),), memory="m"))
    assert assigned(schedule({}, [[write], [read]], rows=["m"])) == ["r", "m"]


def test_resets_are_told_apart_by_their_number():
    def reset(name):
        zero = Expression("bits", (Bits.constant(0, 4),))
        return Clause(when("rst"), Target(name), zero)

    registers = [[reset(name), clause(None, name, "i")] for name in "abcd"]
    found = schedule({}, [*registers, [clause("rst", "e", "i"), clause(None, "e", "j")]])
    assert found.resets == {when("rst"): [reset(name) for name in "abcd"]}


def test_many_groups_are_not_rated_again_and_again(monkeypatch):
    """64 cores have 5,200 groups; a model of them is to be built in 90 seconds."""
    rated = []
    cost = Schedule._cost
    monkeypatch.setattr(Schedule, "_cost", lambda *all: rated.append(0) or cost(*all))
    count = 500
    chain = [[clause(f"e{n}", f"r{n}", f"r{n - 1}")] for n in range(1, count + 1)]
    found = schedule({}, [[clause(None, "r0", "i")], *chain])
    assert assigned(found) == [f"r{n}" for n in range(count, -1, -1)]
    assert len(rated) <= 4 * count
