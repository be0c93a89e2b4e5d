# SPDX-License-Identifier: Apache-2.0
from sim.rewriter.netlist import (
    ALWAYS,
    Bits,
    Clause,
    Condition,
    Expression,
    Instance,
    Module,
    Register,
    Signal,
    Target,
)
from sim.rewriter.passes import drop_inputs, drop_unread, drop_unread_inputs


def one(name):
    """A signal of one bit."""
    return Bits.whole(name, 1)


def computed(*names):
    """Something that is computed from signals."""
    return Expression("$and", tuple(map(one, names)))


def register(name, value, *, enable=None, address=None):
    """A register, or a write port if there is an address."""
    condition = Condition(((one(enable), True),)) if enable else ALWAYS
    target = Target(name, one(address), 0, 1) if address else Target(name)
    return Register(one("clk"), [Clause(condition, target, value)])


def logic(variables, registers, *, outputs=None, inputs=None):
    """Logic with an output ``o``."""
    instances = [Instance("region", "i", inputs, {})] if inputs else []
    return Module(
        "m", {"o": "output"}, {}, variables, registers, outputs or {}, instances, clock="clk"
    )


def test_a_register_that_only_counts_for_itself_goes_with_what_it_needs():
    counter = register("n", computed("following"), enable="e")
    variables = {"following": computed("n"), "x": computed("a")}
    found = logic(variables, [counter], outputs={"o": one("x")})
    drop_unread(found)
    assert found.variables == {"x": computed("a")}
    assert found.registers == []


def test_whatever_an_output_or_an_instance_depends_on_stays():
    row = Expression("row", (one("a"),), memory="m")
    registers = [
        register("o", computed("x"), enable="enable"),  # an output itself
        register("q", computed("a")),  # its enable, and an address
        register("m", computed("y"), address="q"),  # a memory that an instance gets a row of
    ]
    variables = {"enable": computed("q", "e"), "x": computed("a"), "y": computed("a", "e"),
                 "row": row}  # fmt: skip
    found = logic({**variables, "unused": computed("q")}, registers, inputs={"p": one("row")})
    drop_unread(found)
    assert found.variables == variables
    assert found.registers == registers


def test_inputs_that_nothing_reads_go_but_never_the_clock():
    signals = {name: Signal(1) for name in ("clk", "rst", "a", "o")}
    ports = {"clk": "input", "rst": "input", "a": "input", "o": "output"}
    found = Module("m", ports, signals, outputs={"o": one("a")}, clock="clk")
    assert drop_unread_inputs(found) == {"rst"}
    assert list(found.ports) == ["clk", "a", "o"]
    assert "rst" not in found.signals


def test_instances_are_left_without_the_inputs_that_their_modules_have_lost():
    inputs = {"rst": one("rst"), "a": one("a")}
    kept = Instance("other", "second", dict(inputs), {})
    module = Module("top", {})
    module.instances = [Instance("region", "first", dict(inputs), {}), kept]
    drop_inputs(module, {"region": {"rst"}})
    assert [instance.inputs for instance in module.instances] == [{"a": one("a")}, inputs]
