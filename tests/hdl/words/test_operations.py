# SPDX-License-Identifier: Apache-2.0
from amaranth import *
from amaranth.sim import Simulator
import pytest

from hdl.parameters import JoinParameters
from hdl.words.inputs import Control, control_layout
from hdl.words.operands import answers_mark, begins_window, empties_window

ANSWERED = {Control.CLEAR, Control.FLUSH, Control.PRECISION, Control.INNER}
BEGINNING = {Control.WINDOW, Control.LIFESPAN}
#: Accelerators, and the operations that empty a window.
EMPTYING = {
    "scan": ({}, BEGINNING | {Control.CLEAR}),
    "digests of an equality": (
        {"digest_bits": 4, "comparator": "equality"}, BEGINNING | {Control.CLEAR},
    ),
    "digests of a band": ({"digest_bits": 4}, BEGINNING | {Control.CLEAR, Control.CELL}),
    "index": (
        {"engine": "index"}, BEGINNING | {Control.CLEAR, Control.COORDINATE, Control.DISTINCT},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EMPTYING)
def test_effects_of_each_operation(name):
    changes, emptying = EMPTYING[name]
    parameters = JoinParameters.of(**changes)
    m = Module()
    control = Signal(control_layout(parameters))
    effects = Signal(3)
    m.d.comb += effects.eq(
        Cat(answers_mark(control), begins_window(control), empties_window(control, parameters))
    )
    simulator = Simulator(m)

    async def bench(ctx):
        for op in Control:
            ctx.set(control.op, op)
            expected = [op in ANSWERED, op in BEGINNING, op in emptying]
            assert [ctx.get(effects[n]) for n in range(3)] == expected, op

    simulator.add_testbench(bench)
    simulator.run()
