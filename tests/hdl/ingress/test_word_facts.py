# SPDX-License-Identifier: Apache-2.0
"""What a word says by itself, against plain Python."""

import random

import pytest

from hdl.ingress.word_facts import is_clear, word_facts
from hdl.parameters import JoinParameters, KeyField
from hdl.words.inputs import Control, InputKind, control_layout, input_word
from tests.hdl.word_model import SHAPES, AnyWord, any_words, outcomes


def facts_of(parameters, words):
    """The facts of words, says the circuit."""

    def facts(_, word):
        return {**word_facts(parameters, word), "is_clear": is_clear(word)}

    return outcomes(input_word(parameters), facts, [word.bits for word in words])


@pytest.mark.few(5)
@pytest.mark.parametrize("shape", SHAPES)
def test_any_word_has_the_facts_that_it_means(shape):
    parameters = SHAPES[shape]
    words = any_words(parameters, random.Random(shape), 500)
    for word, facts in zip(words, facts_of(parameters, words), strict=True):
        inner = word.operation == "INNER" and parameters.engine.rounds
        precision = word.operation == "PRECISION" or inner
        expected = {
            "legal": word.legal,
            "clear": word.operation == "CLEAR",
            "is_clear": word.operation == "CLEAR",
            "is_r": word.held[0],
            "is_s": word.held[1],
            "finish": word.finish,
            "set_precision": precision,
            "bounds": word.bounds,
            "limits": word.limits,
        }
        if precision:
            expected |= {
                "wanted": word.period,
                "single": word.period == 1,
                "unordered": word.period == 0 or word.period > parameters.engine.probes,
            }
        if precision and parameters.engine.rounds:
            assert (facts["rounds"] > 0) == (inner and word.value != 0)
        assert ("rounds" in facts) == parameters.engine.rounds
        if all(word.held):
            expected["first"] = word.first
        assert {name: facts[name] for name in expected} == expected
        assert ("first" in facts) == (parameters.engine.tuples_per_word == 2)


@pytest.mark.few(3)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_illegal_word_holds_nothing_ends_nothing_and_sets_nothing(shape):
    parameters = SHAPES[shape]
    words = [
        AnyWord(parameters, kind, 1, op, index, 1, rest=-1 & (1 << 64) - 1)
        for kind in (InputKind.CONTROL.value, InputKind.BOTH.value)
        for op in range(16)
        for index in range(16)
    ]
    illegal = [facts for facts in facts_of(parameters, words) if not facts["legal"]]
    assert len(illegal) >= sum(not word.legal for word in words) > 50
    acts = ("clear", "is_r", "is_s", "finish", "set_precision", "bounds")
    assert not any(facts[name] for facts in illegal for name in acts)


@pytest.mark.parametrize(("probes", "bits"), [(1, 0), (1, 1), (2, 1), (3, 4), (16, 4)])
def test_every_period_that_can_be_asked_for(probes, bits):
    keys = (KeyField(name="x", bits=3),)
    parameters = JoinParameters.of(sub_window=8, keys=keys, probes=probes, probe_bits=bits)
    width = control_layout(parameters)["value"].width
    values = range(-1 << width - 1, 1 << width - 1)
    kind, op = InputKind.CONTROL.value, Control.PRECISION.value
    words = [AnyWord(parameters, kind, 0, op, 0, value) for value in values]
    longest = 1 << bits
    for value, facts in zip(values, facts_of(parameters, words), strict=True):
        wanted = value if 0 <= value <= longest else longest
        found = [facts[name] for name in ("set_precision", "single", "unordered", "wanted")]
        assert found == [1, wanted == 1, wanted == 0 or wanted > probes, wanted]
