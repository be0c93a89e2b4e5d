# SPDX-License-Identifier: Apache-2.0
"""Which words are legal and what their values stand for, against plain Python."""

import random

from amaranth import *
import pytest

from hdl.words.inputs import Control, InputKind, input_word, operation_indices, value_ranges
from hdl.words.operands import (
    bounds_set,
    ends_groups,
    executes,
    is_legal,
    limit_value,
    saturated,
    value_limits,
)
from hdl.words.prepared import scheduled_word
from tests.hdl.word_model import SHAPES, AnyWord, any_words, executed, outcomes


@pytest.mark.parametrize("shape", SHAPES)
def test_a_word_is_executed_if_it_has_an_operation_and_an_index_that_there_are(shape):
    parameters = SHAPES[shape]
    words = [
        AnyWord(parameters, kind, 0, op, index, value=1)
        for kind in range(4)
        for op in range(16)
        for index in range(16)
    ]

    def facts(_, word):
        without = (Control.CLEAR, Control.WINDOW)
        return {
            "executed": executes(parameters, word),
            "legal": is_legal(parameters, word),
            "finish": ends_groups(parameters, word),
            "others": executes(parameters, word, without=without),
        }

    layout = input_word(parameters)
    found = outcomes(layout, facts, [word.bits for word in words])
    for word, facts in zip(words, found, strict=True):
        others = word.executed and word.operation not in ("CLEAR", "WINDOW")
        assert facts == {
            "executed": word.executed,
            "legal": word.legal,
            "finish": word.finish,
            "others": others,
        }
    count = sum(word.executed for word in words)
    assert count == sum(executed(parameters).values())
    assert count == sum(operation_indices(parameters).values())


@pytest.mark.parametrize("shape", SHAPES)
def test_which_bounds_a_word_sets_and_which_limits_its_value_exceeds(shape):
    parameters = SHAPES[shape]
    words = any_words(parameters, random.Random(shape), 600)

    def facts(_, word):
        return {
            "bounds": bounds_set(parameters, word),
            "limits": value_limits(parameters, word),
        }

    layout = input_word(parameters)
    found = outcomes(layout, facts, [word.bits for word in words])
    assert found == [{"bounds": word.bounds, "limits": word.limits} for word in words]
    sets = {word.bounds for word in words}
    assert len(sets) == 1 + 2 * len(parameters.keys) * (parameters.predicate.kind == "band")
    # A word may be too narrow for a value above a range, but not for one below it.
    assert len({word.limits for word in words}) > len(value_ranges(parameters))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_value_out_of_range_becomes_the_nearest_one_and_nothing_else_changes(shape):
    parameters = SHAPES[shape]
    words = any_words(parameters, random.Random(shape), 1_200)

    def limited(m, word):
        scheduled = Signal(scheduled_word(parameters))
        m.d.comb += [
            scheduled.word.eq(word),
            scheduled.limits.as_value().eq(value_limits(parameters, word)),
        ]
        limit_value(m, parameters, scheduled)
        return {"word": scheduled.word}

    layout = input_word(parameters)
    found = outcomes(layout, limited, [word.bits for word in words])
    changed = 0
    for word, outcome in zip(words, found, strict=True):
        least, most = word.range or (word.value, word.value)
        nearest = min(max(word.value, least), most)
        changed += nearest != word.value
        parts = (word.kind, word.first, word.op, word.index, nearest, word.rest)
        assert outcome["word"] == AnyWord(parameters, *parts).bits
    assert changed > 10


@pytest.mark.parametrize("bits", [1, 2, 3, 6])
@pytest.mark.parametrize("width", [1, 2, 3, 5, 6, 7])
def test_a_number_saturates_at_the_nearest_that_there_is(bits, width):
    values = range(-(1 << bits - 1), 1 << bits - 1)
    found = outcomes(signed(bits), lambda _, value: {"number": saturated(value, width)}, values)
    least, most = -(1 << width - 1), (1 << width - 1) - 1
    assert [outcome["number"] for outcome in found] == [
        min(max(value, least), most) for value in values
    ]


def test_a_tuple_sets_no_bound_whatever_its_bits():
    parameters = SHAPES["three"]
    for kind in (InputKind.R, InputKind.S, InputKind.BOTH):
        word = AnyWord(parameters, kind.value, 0, Control.BOUND_LOW.value, 0, 0)
        (found,) = outcomes(
            input_word(parameters), lambda _, w: {"bounds": bounds_set(parameters, w)}, [word.bits]
        )
        assert not found["bounds"]
