# SPDX-License-Identifier: Apache-2.0
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sim.model.scale_gate import GateWord, GateWordKind, ScaleGateReference

TUPLE, WATERMARK, LEAVE, BARRIER = GateWordKind


def at(time, body=0):
    return GateWord(TUPLE, time, body)


def places(words):
    return [(word.time, word.source) for word in words]


def test_a_tuple_is_ready_when_nothing_can_come_before_it():
    gate = ScaleGateReference(2)
    assert gate.push(0, at(5)) == []
    assert gate.push(1, at(5)) == [GateWord(TUPLE, 5, source=0)]  # source 0 may send 5 again
    assert places(gate.push(0, GateWord(WATERMARK, 6))) == [(5, 1)]


def test_a_source_that_has_left_holds_nobody_back_and_returns_at_what_was_reached():
    gate = ScaleGateReference(2)
    gate.push(1, GateWord(LEAVE))
    assert places(gate.push(0, at(8))) == [(8, 0)]
    assert gate.push(1, at(3, 7)) == []  # source 0 may send 8 again
    (late,) = gate.push(0, at(9))[:1]
    assert (late.time, late.body, late.late) == (8, 7, True)


def test_a_barrier_is_one_of_all_sources_and_time_begins_again():
    gate = ScaleGateReference(2)
    gate.push(0, at(8))
    assert gate.push(0, GateWord(BARRIER, body=1)) == []
    assert gate.push(0, at(2)) == []
    assert [word.kind for word in gate.push(1, GateWord(BARRIER, body=1))] == [TUPLE, BARRIER]
    assert places(gate.push(1, at(3))) == [(2, 0)]


@given(st.lists(st.lists(st.integers(0, 20)), min_size=1, max_size=5), st.randoms())
def test_any_interleaving_of_sorted_sources_gives_the_sorted_merge(times, random):
    sources = [[at(time) for time in sorted(some)] for some in times]
    gate = ScaleGateReference(len(sources))
    queues = [list(source) for source in sources]
    found = []
    while any(queues):
        number = random.choice([n for n, queue in enumerate(queues) if queue])
        found += gate.push(number, queues[number].pop(0))
        # Definition 3: what has left is not above the least latest time of all sources.
        latest = [
            source[len(source) - len(queue) - 1].time if len(queue) < len(source) else 0
            for source, queue in zip(sources, queues, strict=True)
        ]
        assert all(word.time <= min(latest) for word in found)
    for number in range(len(sources)):
        found += gate.push(number, GateWord(LEAVE))
    assert all(a <= b for a, b in pairwise(places(found)))
    assert places(found) == sorted((time, n) for n, some in enumerate(times) for time in some)
