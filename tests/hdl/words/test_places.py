# SPDX-License-Identifier: Apache-2.0
from amaranth import *
from amaranth.sim import Simulator
import pytest

from hdl.parameters import JoinParameters, KeyField
from hdl.words.inputs import InputKind, input_word
from hdl.words.operands import has_tuples, held_tuples, place_tuple, times
from tests.hdl.input_words import both_word, control_word, tuple_word

R, S = {"x": 3}, {"x": -2}


def places_parameters(**changes):
    """Parameters with timestamps."""
    keys = (KeyField(name="x", bits=4),)
    return JoinParameters.of(keys=keys, timestamp_bits=5, **changes)


#: Words, whether they hold a tuple of R and of S, and the times of the first and the last tuple.
WORDS = [
    (tuple_word(0, R, 7), [1, 0], (7, 7)),
    (tuple_word(1, S, 9), [0, 1], (9, 9)),
    (both_word(0, R, S, 5, 6), [1, 1], (5, 6)),
    (both_word(1, R, S, 5, 6), [1, 1], (6, 5)),
    (control_word("FLUSH"), [0, 0], None),
]


@pytest.mark.parametrize(("word", "held", "expected"), WORDS)
def test_a_word_of_two_tuples_says_which_it_holds_and_when_they_came(word, held, expected):
    parameters = places_parameters(engine="index", tuples_per_word=2)
    m = Module()
    given = Signal(input_word(parameters))
    placed = Signal(input_word(parameters))
    m.d.comb += placed.eq(given)
    place_tuple(m, given, placed)
    simulator = Simulator(m)

    async def bench(ctx):
        ctx.set(given, word)
        assert [ctx.get(value) for value in held_tuples(parameters, given)] == held
        assert ctx.get(has_tuples(parameters, given)) == any(held)
        if expected:
            assert tuple(ctx.get(value) for value in times(given)) == expected
        if held[0]:
            assert ctx.get(placed.body.both.r.key.x) == R["x"]
        if held[1]:
            assert ctx.get(placed.body.both.s.key.x) == S["x"]

    simulator.add_testbench(bench)
    simulator.run()


def test_of_one_tuple_there_is_one():
    parameters = places_parameters()
    m = Module()
    word = Signal(input_word(parameters))
    simulator = Simulator(m)

    async def bench(ctx):
        for given, held, _ in (WORDS[0], WORDS[1], WORDS[4]):
            ctx.set(word, given)
            assert [ctx.get(value) for value in held_tuples(parameters, word)] == held
            assert ctx.get(has_tuples(parameters, word)) == any(held)
        ctx.set(word.kind, InputKind.BOTH)  # which is illegal
        assert not ctx.get(has_tuples(parameters, word))

    simulator.add_testbench(bench)
    simulator.run()
