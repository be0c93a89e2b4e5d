# SPDX-License-Identifier: Apache-2.0

from datetime import timedelta

import pytest

from host.errors import UsageError
from host.query.quantities import Duration
from host.query.queries import Aggregate, AggregateQuery

PLAIN = {"time": "at", "window": 10, "aggregates": {"n": "count"}}


def test_forms_of_a_query():
    asked = AggregateQuery(
        time="at", window=timedelta(minutes=1), advance=Duration(10**10), on="item",
        aggregates={"n": "count", "total": ("sum", "price"), "m": "mean:unit:price"},
    )  # fmt: skip
    assert asked.on == ("item",)
    assert asked.columns == ("price", "unit:price")
    assert asked.aggregates["m"] == Aggregate("mean", "unit:price")
    assert str(asked) == (
        "n = count(*), total = sum(price), m = mean(unit:price) by item over 1min of at, every 10s"
    )
    assert AggregateQuery(**PLAIN).advance == 10


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"window": 0}, "window must be a duration or a whole number of at least 1, not 0."),
        ({"window": True}, "not True"),
        ({"advance": 2.5}, "advance must be a duration or a whole number of at least 1"),
        ({"advance": Duration(-1)}, "not -1ns"),
        ({"advance": 11}, "Windows of 10 must advance by at most that"),
        ({"advance": Duration(5)}, "Window 10 and advance 5ns must both be durations, or both"),
        ({"aggregates": {}}, "An aggregation needs at least one aggregate, such as n=count."),
        ({"aggregates": {"window_end": "count"}}, "several columns called 'window_end'"),
        ({"on": ["n"]}, "several columns called 'n'; choose another name for an aggregate"),
        ({"on": ["a", "a"]}, "several columns called 'a'"),
        ({"aggregates": {"n": "median:x"}}, "one of count, sum, min, max, mean, not 'median'"),
        ({"aggregates": {"n": "sum"}}, "Aggregate 'sum' needs a column, as in 'sum:price'."),
    ],
)
def test_queries_that_mean_nothing_are_refused(changes, message):
    with pytest.raises(UsageError) as caught:
        AggregateQuery(**PLAIN | changes)
    assert message in str(caught.value)
