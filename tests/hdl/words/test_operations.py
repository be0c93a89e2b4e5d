# SPDX-License-Identifier: Apache-2.0
from amaranth import *
from amaranth.sim import Simulator
import pytest

from hdl.parameter_checks import ENGINES
from hdl.parameters import JoinParameters
from hdl.words.inputs import Control, control_layout
from hdl.words.operations import answers_mark, begins_window, empties_window

ANSWERED = {Control.CLEAR, Control.FLUSH, Control.PRECISION, Control.INNER}
BEGINNING = {Control.WINDOW, Control.LIFESPAN}
#: Operations that empty a window, by engine.
EMPTYING = {
    "scan": BEGINNING | {Control.CLEAR},
    "index": BEGINNING | {Control.CLEAR, Control.COORDINATE, Control.DISTINCT},
}


@pytest.mark.parametrize("engine", ENGINES)
def test_effects_of_each_operation(engine):
    parameters = JoinParameters(engine=engine)
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
            expected = [op in ANSWERED, op in BEGINNING, op in EMPTYING[engine]]
            assert [ctx.get(effects[n]) for n in range(3)] == expected, op

    simulator.add_testbench(bench)
    simulator.run()
