# SPDX-License-Identifier: Apache-2.0
import random

from amaranth.sim import Simulator
import pytest

from hdl.parameters import JoinParameters
from hdl.shells.merged_inputs import MarkWatch, WordWatch
from hdl.words.inputs import input_word
from hdl.words.results import ResultKind, result_word
from tests.hdl.cycles import each_cycle
from tests.hdl.input_words import control_word, integer, tuple_word


@pytest.mark.parametrize("ports", [1, 2])
def test_marks_are_owed_until_they_have_left_by_all_ports(ports):
    dut = MarkWatch(ports)
    rng = random.Random(ports)
    asked, given = 0, [0] * ports
    expected = [(0, 0)]

    def steps(put, get):
        nonlocal asked
        for _ in range(400):
            assert (get("owed"), get("complete")) == expected[-1]
            asks = rng.random() < 0.3
            gives = [rng.random() < 0.4 and count < asked for count in given]
            put(asked=asks, given=sum(give << n for n, give in enumerate(gives)))
            before = min(given)
            for n, give in enumerate(gives):
                given[n] += give
            asked += asks
            expected.append((int(min(given) < asked), int(min(given) > before)))
            yield

    each_cycle(dut, steps)
    assert asked > 50


GATED = JoinParameters.of(
    cores=2, sub_window=8, timestamp_bits=8, failure_cycles=10_000, parity=True,
    engine="index", tuples_per_word=2,
)  # fmt: skip
ROUNDS = JoinParameters.of(cores=2, sub_window=8, rounds=True)


def punctuation(kind, **faults):
    return {"kind": kind, "side": 0, "body": {"punctuation": faults}}


def told(parameters, *results, leaves=1):
    """Return the faults that a word with some results tells of."""
    dut = WordWatch(parameters)
    shape = result_word(parameters)
    one, *two = results
    if parameters.engine.tuples_per_word == 1:
        word = one
    else:
        nothing = {"kind": ResultKind.NONE, "side": 0, "body": {"pair": {}}}
        word = {"one": one, "two": two[0] if two else nothing}
    found = []

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        for cycle in range(6):
            ctx.set(dut.leaves, leaves if cycle == 1 else 0)
            ctx.set(dut.o[0].as_value(), integer(shape, word) if cycle == 1 else 0)
            found.append(ctx.get(dut.faults))
            await ctx.tick()

    simulator.add_testbench(bench)
    simulator.run()
    assert not any(found[: 1 + dut.latency] + found[2 + dut.latency :])
    return found[1 + dut.latency]


STAR, MARK, PAIR = ResultKind.STAR, ResultKind.MARK, ResultKind.PAIR


@pytest.mark.parametrize(
    ("parameters", "results", "faults"),
    [
        (GATED, [punctuation(STAR, illegal=1)], 1),
        (GATED, [punctuation(MARK, disorder=1)], 2),
        (GATED, [punctuation(STAR, overflow=1), punctuation(STAR, overflow=2)], 4 | 8),
        (GATED, [punctuation(STAR), punctuation(STAR, failed=1, failed_parity=0)], 16),
        (GATED, [punctuation(STAR, failed=1, failed_parity=2)], 16 | 32),
        (GATED, [punctuation(PAIR, illegal=1, overflow=3)], 0),
        (GATED, [punctuation(STAR), punctuation(ResultKind.NONE, illegal=1)], 0),
        (ROUNDS, [punctuation(STAR, inner=1, illegal=1)], 0),
        (ROUNDS, [punctuation(MARK, inner=1, illegal=1)], 1),
        (ROUNDS, [punctuation(STAR, inner=0, illegal=1)], 1),
    ],
)
def test_stars_and_marks_tell_of_faults(parameters, results, faults):
    assert told(parameters, *results) == faults
    assert told(parameters, *results, leaves=0) == 0


@pytest.mark.parametrize("rounds", [False, True])
def test_a_mark_is_owed_for_words_that_are_answered_by_one(rounds):
    parameters = ROUNDS.with_(rounds=rounds)
    layout = input_word(parameters)
    operations = ["CLEAR", "FLUSH", "PRECISION", "INNER", "WINDOW", "CORE", "SEGMENT", "BOUND_LOW"]
    words = [(op, control_word(op)) for op in operations]
    words.append(("tuple", tuple_word(0, {"x": 0})))
    for name, word in words:
        dut = WordWatch(parameters)
        owed = []

        def steps(put, get, owed=owed, word=word):
            put(i=layout.const(word), enters=0)
            yield
            yield
            owed.append(get("busy"))
            put(enters=1)
            yield
            put(enters=0)
            yield
            owed.append(get("busy"))

        each_cycle(dut, steps)
        answered = ["CLEAR", "FLUSH", "PRECISION"] + ["INNER"] * rounds
        assert owed == [0, int(name in answered)], name
