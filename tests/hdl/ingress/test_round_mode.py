# SPDX-License-Identifier: Apache-2.0
"""In which rounds results come, against a model that takes one word after the other."""

import random

import pytest

from hdl.ingress.punctuation import RoundMode
from hdl.parameters import JoinParameters
from hdl.words.values import longest_round
from tests.hdl.cycles import each_cycle


@pytest.mark.parametrize("seed", range(3))
def test_a_segment_among_tuples_ends_rounds_until_these_are_gone(seed):
    """The word at hand is decided in the same cycle, one in each cycle."""
    parameters = JoinParameters.of(cores=3, sub_window=5, rounds=True)
    dut = RoundMode(parameters)
    assert dut.latency == 0
    generator, met = random.Random(seed), set()

    def steps(put, get):
        rounds, drifted, received = 0, [False, False], [False, False]
        for _ in range(600):
            word = generator.choices(["inner", "precision", "segment", "empties", "tuples"],
                                     [4, 1, 1, 2, 2])[0]  # fmt: skip
            sides = generator.choice([1, 2, 3])
            wanted = generator.randrange(longest_round(parameters) + 2) * (word == "inner")
            advance = generator.random() < 0.7
            put(
                advance=advance, set_precision=word in ("inner", "precision"), wanted=wanted,
                tuples=sides if word == "tuples" else 0,
                segment=word == "segment", empties=sides if word == "empties" else 0,
            )  # fmt: skip
            after = rounds
            if word == "segment" and any(received):
                after = 0
            elif word in ("inner", "precision"):
                after = 0 if any(drifted) else wanted
                met.add((word, any(drifted), after > 0))
            assert get("rounds") == after
            if advance:
                rounds = after
                for side in range(2):
                    if word == "segment":
                        met.add((word, any(received), after > 0))
                        drifted[side] |= received[side]
                    elif word == "tuples" and sides >> side & 1:
                        received[side] = True
                    elif word == "empties" and sides >> side & 1:
                        drifted[side] = received[side] = False
            yield

    each_cycle(dut, steps)
    assert met >= {("inner", False, True), ("inner", True, False), ("precision", False, False),
                   ("segment", False, True), ("segment", True, False)}  # fmt: skip
