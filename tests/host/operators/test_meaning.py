# SPDX-License-Identifier: Apache-2.0

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from host.errors import UsageError
from host.operators.meaning import general, reference_results
from host.operators.windowed import Key, Output, Reduction
from host.reference.operator import Arrival, OperatorInstance
from tests.host.operators.brute_force import (
    arrivals,
    joined_pairs,
    matched_results,
    window_results,
)
from tests.host.operators.operators import (
    ALL,
    EVERYTHING,
    FORWARD,
    JOIN,
    JOIN_AGGREGATE,
    KEYLESS,
    PRICE,
    SEVERAL_KEYS,
)

few = settings(max_examples=30)
AGGREGATES = [operator for operator in ALL if operator.kind == "aggregate"]


def arriving(rows, **extra):
    return [Arrival(time, fields, number, **extra) for time, number, fields in rows]


def plain(results):
    return [(result.timestamp, result.key, result.values) for result in results]


@pytest.mark.few(3)
@pytest.mark.parametrize("instances", ["multi", "single"])
@pytest.mark.parametrize("operator", AGGREGATES, ids=lambda operator: operator.name)
@few
@given(data=st.data())
def test_each_window_of_each_key_gives_its_result_once(operator, instances, data):
    rows = data.draw(arrivals(operator))
    results = reference_results(operator.with_(instances=instances), arriving(rows))
    assert plain(results) == window_results(operator, rows)


@pytest.mark.few(2)
@pytest.mark.parametrize("operator", ALL, ids=lambda operator: operator.name)
@few
@given(data=st.data())
def test_times_of_results_are_watermarks(operator, data):
    """Lemma 2: results come in the order of their times."""
    rows = data.draw(arrivals(operator))
    instance = OperatorInstance(general(operator))
    reached = None
    for arrival in arriving(rows):
        for result in instance.process(arrival):
            assert reached is None or result.timestamp >= reached
            reached = result.timestamp
    times = [result.timestamp for result in instance.finish()]
    assert times == sorted(times)
    assert not times or reached is None or times[0] >= reached
    assert instance.late == 0


@pytest.mark.parametrize("in_turns", [True, False])
@pytest.mark.parametrize("advance", [1, 3])
@few
@given(data=st.data())
def test_each_pair_of_a_window_is_joined_once(advance, in_turns, data):
    """In turns, a pair comes under one key; otherwise it comes under each key."""
    operator = JOIN.with_(advance=advance, in_turns=in_turns)
    rows = data.draw(arrivals(operator))
    results = plain(reference_results(operator, arriving(rows)))
    copies = 1 if in_turns else len(operator.keys)
    expected = Counter(joined_pairs(operator, rows) * copies)
    assert Counter((end, values) for end, _, values in results) == expected
    if not in_turns:
        by_key = Counter(key for _, key, _ in results)
        assert len(set(by_key.values())) <= 1


@few
@given(data=st.data())
def test_each_left_tuple_gives_what_its_matches_add_up_to(data):
    rows = data.draw(arrivals(JOIN_AGGREGATE))
    results = plain(reference_results(JOIN_AGGREGATE, arriving(rows)))
    assert results == matched_results(JOIN_AGGREGATE, rows)


def test_no_match_adds_up_to_nothing():
    operator = JOIN_AGGREGATE.with_(having=None)
    (result,) = reference_results(operator, [Arrival(0, {"x": 1, "k": 1})])
    assert (result.timestamp, result.key, result.values) == (3, (1,), (1, 1, 0, None, None))
    some = operator.with_(having="low > 0")
    assert reference_results(some, [Arrival(0, {"x": 1, "k": 1})]) == []


def test_turns_spread_tuples_over_all_keys():
    rows = [(time, time % 2, {"x": 0, "y": 0} if time % 2 == 0 else {"x": 0, "z": 0})
            for time in range(400)]  # fmt: skip
    results = reference_results(JOIN, arriving(rows))
    assert {result.key for result in results} == {(0,), (1,), (2,), (3,)}


@few
@given(data=st.data())
def test_every_tuple_is_forwarded_for_each_of_its_keys(data):
    rows = data.draw(arrivals(FORWARD))
    results = plain(reference_results(FORWARD, arriving(rows)))
    assert results == [(t + 1, key, (f["price"],)) for t, _, f in rows for key in ((1,), (2,))]


@pytest.mark.few(1)
@pytest.mark.parametrize("operator", AGGREGATES, ids=lambda operator: operator.name)
@few
@given(data=st.data())
def test_explicit_watermarks_let_tuples_come_in_any_order(operator, data):
    """As long as no tuple is below the watermark, the order does not change the answer."""
    rows = data.draw(arrivals(operator, is_sorted=False))
    safe, watermarks = None, []
    for time, _, _ in reversed(rows):
        safe = time if safe is None else min(safe, time)
        watermarks.append(safe)
    instance = OperatorInstance(general(operator))
    results = []
    for (time, number, fields), watermark in zip(rows, reversed(watermarks), strict=True):
        results += instance.process(Arrival(time, fields, number, watermark=watermark))
    results += instance.finish()
    got = [(result.timestamp, *result.payload) for result in results]
    assert got == window_results(operator, rows)
    assert instance.late == 0


@few
@given(data=st.data())
def test_a_late_tuple_counts_only_in_windows_that_are_open(data):
    rows = data.draw(arrivals(SEVERAL_KEYS, is_sorted=False))
    instance = OperatorInstance(general(SEVERAL_KEYS))
    results, reached, late, kept = [], None, 0, Counter()
    for arrival in arriving(rows):
        reached = arrival.timestamp if reached is None else max(reached, arrival.timestamp)
        for end in range(0, 4 * SEVERAL_KEYS.size + 99, SEVERAL_KEYS.advance):
            if end - SEVERAL_KEYS.size <= arrival.timestamp < end:
                for key in set(general(SEVERAL_KEYS).keys(arrival)):
                    late += end <= reached
                    kept[end, key] += end > reached
        results += instance.process(arrival)
    results += instance.finish()
    got = {(result.timestamp, result.payload[0]): result.payload[1][0] for result in results}
    assert got == {place: count for place, count in kept.items() if count}
    assert len(got) == len(results)
    assert instance.late == late


def test_watermarks_end_windows_exactly_at_their_right_boundary():
    instance = OperatorInstance(general(KEYLESS))
    assert instance.process(Arrival(7, {"price": 1})) == []
    assert instance.advance(9) == []
    (result,) = instance.advance(10)
    assert (result.timestamp, result.payload) == (10, ((), (1,)))
    assert instance.advance(8) == []
    assert instance.watermark == 10


def test_windows_begin_below_zero_too():
    operator = KEYLESS.with_(size=6, advance=2)
    rows = [(1, 0, {"price": 0})]
    assert plain(reference_results(operator, arriving(rows))) == [
        (2, (), (1,)),
        (4, (), (1,)),
        (6, (), (1,)),
    ]


def test_open_windows_wait_for_more_tuples_unless_the_stream_ends():
    rows = arriving([(1, 0, {"price": 0}), (6, 0, {"price": 0})])
    assert plain(reference_results(KEYLESS, rows, finish=False)) == [(5, (), (1,))]
    assert len(reference_results(KEYLESS, rows)) == 2
    assert reference_results(KEYLESS, []) == []


@pytest.mark.parametrize("instances", ["multi", "single"])
def test_state_that_leaves_its_bits_is_an_overflow(instances):
    operator = KEYLESS.with_(
        keys=[Key("price & 1")],
        reductions=[Reduction("total", "sum", "price", bits=12)],
        outputs=None,
        key_names=None,
        instances=instances,
    )
    rows = [(5, 0, {"price": 2001}), (6, 0, {"price": 46}), (7, 0, {"price": 47})]
    with pytest.raises(UsageError) as caught:
        reference_results(operator, arriving(rows))
    assert str(caught.value) == (
        "Reduction 'total' is 2048 in window [5, 10) of key (1,), outside the range -2048 .. 2047 "
        "of its state; give it more bits, or smaller windows."
    )


@pytest.mark.parametrize(
    ("second", "place"),
    [(Arrival(3, {"price": 0}), "time 4 before it"),
     (Arrival(4, {"price": 0}, watermark=2), "an explicit watermark")],
)  # fmt: skip
def test_a_single_instance_takes_tuples_in_order_only(second, place):
    instance = OperatorInstance(general(KEYLESS.with_(instances="single")))
    instance.process(Arrival(4, {"price": 0}))
    with pytest.raises(UsageError) as caught:
        instance.process(second)
    assert f"has {place}: an operator with a single window instance" in str(caught.value)
    assert "sort them first, or use instances 'multi'" in str(caught.value)


def test_a_mean_of_nothing_is_null():
    operator = KEYLESS.with_(
        reductions=[Reduction("n", "sum", "price > 5"), Reduction("total", "sum", "price")],
        outputs=[Output("mean", "total", per="n")],
    )
    assert [
        result.values
        for price in (5, 8)
        for result in reference_results(operator, [Arrival(0, {"price": price})])
    ] == [(None,), (8,)]


def test_the_fields_of_the_operators_fill_all_their_ranges():
    """Otherwise the tests above would try less than they say."""
    assert PRICE.range.low < 0 < PRICE.range.high
    assert {one.function for one in EVERYTHING.reductions} == {
        "count", "sum", "min", "max", "reduce",
    }  # fmt: skip
