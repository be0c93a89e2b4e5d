# SPDX-License-Identifier: Apache-2.0
from datetime import timedelta

import pytest

from host import TimeWindow, UsageError
from spark_offload.plan.request import build_query


def query(within, **given):
    given = {"on": None, "band": None, "order": "t", "rows": None, **given}
    return build_query(**given, within=within, sorted=False, suffix="_right")


@pytest.mark.parametrize("within", ["5s", "5 seconds", "INTERVAL 5 SECONDS", timedelta(seconds=5)])
def test_a_width_is_a_duration_in_any_spelling(within):
    assert str(query(within)) == "all rows, within |left.t - right.t| <= 5s"


def test_a_window_may_reach_to_one_side_only():
    said = "-5s <= left.t - right.u <= 0s, within |left.t - right.u| <= 5s"
    assert str(query(("-5s", "INTERVAL 0 SECONDS"), order=("t", "u"))) == said
    assert query([-3, 10]).window == TimeWindow(10)
    assert query((-5, 5)).terms == ()


@pytest.mark.parametrize(
    ("within", "said"),
    [
        (-1, "within must be a whole number of at least 0 or a duration.*not -1"),
        (1.5, "within must be .*not 1.5"),
        ((1, None), r"within must be .*not \(1, None\)"),
        ((1, 2, 3), r"within is one length, or \(low, high\).*not \(1, 2, 3\)"),
        (("0s", "-5s"), "low is 0s and high is -5s; swap them"),
        (("0s", 5), "two numbers or two durations, not 0s and 5"),
        ("1 month", "within '1 month' is not a duration: a month has no fixed length"),
    ],
)
def test_what_is_no_window_is_named(within, said):
    with pytest.raises(UsageError, match=said):
        query(within)
