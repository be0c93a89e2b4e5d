# SPDX-License-Identifier: Apache-2.0
from sim.drivers import Logic
from sim.netlist import Register, Signal
from sim.schedule import Copy, Group, Schedule


def schedule(variables, updates, *, visible=(), rows=()):
    """The schedule of registers with these clauses."""
    registers = [Register("clk", clauses) for clauses in updates]
    names = {*variables, *(clauses[0][1].partition("[")[0] for clauses in updates)}
    signals = {name: Signal(4, rows=8 if name in rows else None) for name in names}
    return Schedule(Logic(signals, variables, registers, {}, {}, "clk"), set(visible))


def assigned(found):
    """Names of registers in the order in which they are assigned."""
    groups = [step for step in found.steps if isinstance(step, Group)]
    return [target for group in groups for pairs in group.clauses for target, _ in pairs]


def test_a_register_is_assigned_after_what_reads_it():
    found = schedule({}, [[(None, "a", "i")], [(None, "b", "a")], [(None, "c", "b")]])
    assert assigned(found) == ["c", "b", "a"]


def test_registers_that_swap_need_one_copy():
    found = schedule({}, [[(None, "a", "b")], [(None, "b", "a")]])
    assert sum(isinstance(step, Copy) for step in found.steps) == 1


def test_visible_registers_need_no_order():
    found = schedule({}, [[(None, "a", "b")], [(None, "b", "a")]], visible=["a", "b"])
    assert not found.copies


def test_variables_are_computed_before_what_they_read_changes():
    found = schedule({"v": "a + b"}, [[(None, "a", "i")], [(None, "b", "j")], [(None, "c", "v")]])
    assert found.steps.index("v") == 0
    assert not found.copies


def test_what_one_condition_needs_is_computed_under_it():
    found = schedule({"v": "i + j", "w": "i - j"}, [[("e", "a", "v")], [("e", "b", "w")],
                                                  [("f", "c", "w")]])  # fmt: skip
    groups = {step.conditions: step for step in found.steps if isinstance(step, Group)}
    assert groups["e",].inner == [["v"]]
    assert found.steps.count("w") == 1


def test_a_memory_is_written_after_it_is_read():
    write = [("e", "m[i]", "j")]
    found = schedule({}, [write, [(None, "r", "m[k]")]], rows=["m"])
    assert assigned(found) == ["r", "m[i]"]


def test_resets_are_told_apart_by_their_number():
    resets = [[("rst", name, "4'h0"), (None, name, "i")] for name in "abcd"]
    found = schedule({}, [*resets, [("rst", "e", "i"), (None, "e", "j")]])
    assert found.resets == {"rst": [(name, "4'h0") for name in "abcd"]}


def test_many_groups_are_not_rated_again_and_again(monkeypatch):
    """64 cores have 5,200 groups; a model of them is to be built in 90 seconds."""
    rated = []
    cost = Schedule._cost
    monkeypatch.setattr(Schedule, "_cost", lambda *all: rated.append(0) or cost(*all))
    count = 500
    chain = [[(f"e{n}", f"r{n}", f"r{n - 1}")] for n in range(1, count + 1)]
    found = schedule({}, [[(None, "r0", "i")], *chain])
    assert assigned(found) == [f"r{n}" for n in range(count, -1, -1)]
    assert len(rated) <= 4 * count
