# SPDX-License-Identifier: Apache-2.0

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from host.operators.meaning import general
from host.reference.operator import (
    Arrival,
    GeneralOperator,
    OperatorInstance,
    WindowState,
    run,
)
from tests.host.operators.brute_force import arrivals
from tests.host.operators.operators import ALL
from tests.host.reference.shared_operator import Epoch, SharedOperator


def clock(text):
    hours, minutes = text.split(":")
    return 60 * int(hours) + int(minutes)


def hashtags(arrival):
    return [word[1:] for word in arrival.payload[1].split() if word.startswith("#")]


def longest(windows, arrival):
    (window,) = windows
    return [max(window.state or 0, len(arrival.payload[1]))], []


#: The seed's Operator 9: the longest tweet of each hashtag, with the times of its Appendix E.
LONGEST_TWEET = GeneralOperator(
    size=60,
    advance=30,
    keys=hashtags,
    update=longest,
    output=lambda windows: [(windows[0].key, windows[0].state)],
)


def test_trace_of_the_appendix():
    """Execution Trace 16: 09:58, "hi #red #pink" after 09:50, "hello #pink"."""
    state = WindowState(60, 30, inputs=1)
    instance = OperatorInstance(LONGEST_TWEET, state)
    instance.process(Arrival(clock("9:50"), ("B", "hello #pink")))
    assert instance.process(Arrival(clock("9:58"), ("C", "hi #red #pink"))) == []
    held = {
        (window.key, window.left): window.state
        for key in state.all_keys()
        for left in (clock("9:00"), clock("9:30"))
        for window in state.check_and_create(key, left)
    }
    assert held == {
        ("pink", clock("9:00")): 13,
        ("pink", clock("9:30")): 13,
        ("red", clock("9:00")): 13,
        ("red", clock("9:30")): 13,
    }
    assert len(state) == 4
    results = instance.process(Arrival(clock("10:00"), ("D", "no tag")))
    assert [(result.timestamp, *result.payload) for result in results] == [
        (clock("10:00"), "pink", 13),
        (clock("10:00"), "red", 13),
    ]
    assert len(state) == 2
    assert {result.timestamp for result in instance.finish()} == {clock("10:30")}
    assert len(state) == 0


def test_defaults_store_tuples_and_put_nothing_out():
    """Table I: the default operator keeps the tuples of each window."""
    operator = GeneralOperator(size=4, advance=2, inputs=2, keys=lambda arrival: ["k"], single=True)
    state = WindowState(4, 2, inputs=2)
    instance = OperatorInstance(operator, state)
    for time in (1, 2, 3):
        assert instance.process(Arrival(time, None, time % 2)) == []
    left, right = state.check_and_create("k", 0)
    assert [t.timestamp for t in left.state] == [2]
    assert [t.timestamp for t in right.state] == [1, 3]
    instance.advance(4)
    left, right = state.check_and_create("k", 2)
    assert ([t.timestamp for t in left.state], [t.timestamp for t in right.state]) == ([2], [3])
    assert instance.finish() == []
    assert len(state) == 0


def test_a_key_that_is_given_twice_counts_once():
    operator = GeneralOperator(
        size=1, advance=1, keys=lambda arrival: arrival.payload,
        update=lambda windows, arrival: ([(windows[0].state or 0) + 1], []),
        output=lambda windows: [(windows[0].key, windows[0].state)],
    )  # fmt: skip
    results = run(operator, [Arrival(0, "aba"), Arrival(0, "b"), Arrival(3, "")])
    assert [result.payload for result in results] == [("a", 1), ("b", 2)]


def test_gaps_between_tuples_cost_nothing():
    """Algorithm 2 steps through every boundary from 0; nobody could wait for that."""
    operator = GeneralOperator(
        size=10, advance=1, keys=lambda arrival: [0],
        update=lambda windows, arrival: ([1], []), output=lambda windows: [windows[0].left],
    )  # fmt: skip
    results = run(operator, [Arrival(10**15, None), Arrival(2 * 10**15, None)])
    assert [result.timestamp for result in results] == [
        *range(10**15 + 1, 10**15 + 11), *range(2 * 10**15 + 1, 2 * 10**15 + 11),
    ]  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.parametrize("operator", ALL, ids=lambda operator: operator.name)
@settings(max_examples=25)
@given(data=st.data())
def test_answer_does_not_depend_on_instances_and_epochs(operator, data):
    """Theorem 3: reconfigurations at any time keep the meaning, and move no state."""
    meaning = general(operator)
    numbers = st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True).map(tuple)

    def epoch(instances):
        return Epoch(instances, lambda key: instances[hash(key) % len(instances)])

    rows = data.draw(arrivals(operator))
    tuples = [Arrival(time, fields, number) for time, number, fields in rows]
    shared = SharedOperator(meaning, epoch(data.draw(numbers)))
    got = []
    for arrival in tuples:
        if data.draw(st.booleans()):
            after = arrival.timestamp + data.draw(st.integers(-2, 9))
            shared.reconfigure(after, epoch(data.draw(numbers)))
        got += shared.process(arrival)
    got += shared.finish()
    assert Counter(got) == Counter(run(meaning, tuples))
    assert [one.timestamp for one in got] == sorted(one.timestamp for one in got)


def test_an_epoch_begins_when_the_watermark_grows_beyond_its_time():
    shared = SharedOperator(LONGEST_TWEET, Epoch((0,), lambda key: 0))
    shared.reconfigure(20, Epoch((1, 2), lambda key: 1 + len(key) % 2))
    for time, expected in ((10, (0,)), (20, (0,)), (21, (1, 2)), (22, (1, 2))):
        shared.process(Arrival(time, ("A", "#a #bc")))
        assert shared.instances == expected
    results = shared.finish()
    assert sorted((result.timestamp, *result.payload) for result in results) == [
        (30, "a", 6), (30, "bc", 6), (60, "a", 6), (60, "bc", 6),
    ]  # fmt: skip
