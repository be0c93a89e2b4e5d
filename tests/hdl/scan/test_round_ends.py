# SPDX-License-Identifier: Apache-2.0
"""Where rounds end in the rows of passes, against the numbers of the tuples."""

import random

import pytest

from hdl.parameters import JoinParameters
from hdl.scan.scanner import RoundEnds
from hdl.words.values import longest_round
from tests.halves import half
from tests.hdl.cycles import each_cycle


def random_passes(parameters, generator, count):
    """Spans of passes, by the numbers of their tuples, and the codes of their rounds."""
    slots = parameters.ring_rows * parameters.engine.lanes
    tail = head = 0
    for _ in range(count):
        head += generator.randrange(0, slots // 2)
        tail = max(tail, head - generator.randrange(0, slots // 2 + 1))
        yield tail, head, generator.randrange(longest_round(parameters) + 2)


def rows_of(parameters, tail, head):
    """The rows of a pass, by number: those of the span, or one."""
    lanes = parameters.engine.lanes
    return range(tail // lanes, max(-(-head // lanes), tail // lanes + 1))


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("lanes", "sub_window", "latency", "pace"),
    half([(1, 1), (1, 7), (2, 9), (4, 5), (8, 40)], [1, 4], [1.0, 0.6]),
)
def test_a_round_ends_with_its_last_key_if_that_is_in_the_span(lanes, sub_window, latency, pace):
    """The outcome of a row comes ``latency`` cycles after it, whatever comes in between."""
    parameters = JoinParameters.of(cores=2, sub_window=sub_window, lanes=lanes, rounds=True)
    dut = RoundEnds(parameters, latency=latency)
    assert dut.latency == latency
    generator = random.Random(lanes * sub_window)
    passes = list(random_passes(parameters, generator, 60))
    met = set()

    def group_of(tail, head, code):
        # The row after the last one is a row further if the span ends inside a row.
        rows = 2 * parameters.ring_rows
        return {
            "first": tail // lanes % rows, "second": (tail // lanes + 1) % rows,
            "stop": -(-head // lanes) % rows if head > tail else (tail + lanes - 1) // lanes % rows,
            "tail_lane": tail % lanes, "head_lane": head % lanes,
            "ending": {"count": code > 0, "rounds": max(code, 1)},
        }  # fmt: skip

    def steps(put, get):
        expected = {}
        cycle = 0

        def check():
            if cycle in expected:
                ends, code = expected[cycle]
                assert get("ends") == ends, (cycle, passes)
                if ends:
                    assert get("rounds") == code

        put(load=1, step=0, last=1, group=group_of(*passes[0]))
        yield
        for number, (tail, head, code) in enumerate(passes):
            size = 1 << code >> 1
            rows = rows_of(parameters, tail, head)
            for row in rows:
                last = row == rows[-1]
                while generator.random() >= pace:
                    put(step=0, load=0, row=row % parameters.ring_rows, last=last)
                    check()
                    cycle += 1
                    yield
                held = [
                    bool(code) and tail <= n < head and n % size == size - 1
                    for n in range(row * lanes, row * lanes + lanes)
                ]
                expected[cycle + latency] = (
                    sum(1 << n for n, ends in enumerate(held) if ends),
                    code,
                )
                met.add((code, sum(held)))
                following = passes[number + 1] if number + 1 < len(passes) else passes[0]
                put(
                    step=1, load=last, last=last, row=row % parameters.ring_rows,
                    group=group_of(*following),
                )  # fmt: skip
                check()
                cycle += 1
                yield
        put(step=0, load=0)
        for _ in range(latency):
            check()
            cycle += 1
            yield

    each_cycle(dut, steps)
    assert {code for code, ends in met if ends} >= {1, longest_round(parameters)}
    assert (0, 0) in met


def test_ends_take_a_cycle_at_least():
    with pytest.raises(ValueError, match="take at least one cycle, not 0"):
        RoundEnds(JoinParameters.of(rounds=True), latency=0)
