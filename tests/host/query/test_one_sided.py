# SPDX-License-Identifier: Apache-2.0
import pyarrow as pa
import pytest

from host import TimeWindow, UsageError, open_device
from host.__main__ import parser
from host.cli.arguments import query_from
from host.query.quantities import Duration, parse_duration
from host.query.queries import JoinQuery, one_sided
from host.session.join import join_tables

ROWS = pa.table({"t": [0, 3, 4, 7, 9, 12]})


@pytest.mark.parametrize(("low", "high"), [(-5, 0), (0, 5), (-2, 4), (1, 3), (-4, -2), (3, 3)])
def test_pairs_are_those_whose_difference_lies_between_the_ends(low, high):
    window, terms = one_sided(low, high, ("t", "t"))
    query = JoinQuery(terms=terms, order=("t", "t"), window=window)
    with open_device("software:") as device:
        pairs = join_tables(ROWS, ROWS, query, device).table
    times = ROWS["t"].to_pylist()
    expected = [(a, b) for a in times for b in times if low <= a - b <= high]
    assert sorted(tuple(row.values()) for row in pairs.to_pylist()) == sorted(expected)


def test_equal_ends_need_no_term():
    assert one_sided(-5, 5, ("t", "u")) == (TimeWindow(5), ())
    assert one_sided(parse_duration("-5s"), parse_duration("5s"), ("t", "u"))[1] == ()
    width, (term,) = one_sided(parse_duration("-5s"), Duration(0), ("t", "u"))
    assert str(width) == "5s"
    assert str(term) == "-5s <= left.t - right.u <= 0s"


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1, 0, "low is 1 and high is 0; swap them"),
        (-5, parse_duration("1s"), "two numbers or two durations, not -5 and 1s"),
    ],
)
def test_ends_that_make_no_window_are_named(low, high, said):
    with pytest.raises(UsageError, match=said):
        one_sided(low, high, ("t", "t"))


def test_the_command_line_takes_both_ends():
    files = ["join", "--left", "a.csv", "--right", "b.csv", "--output", "c.csv", "--order", "t:u"]
    query = query_from(parser().parse_args([*files, "--within=-5s:0s"]))
    assert str(query) == "-5s <= left.t - right.u <= 0s, within |left.t - right.u| <= 5s"
    with pytest.raises(UsageError, match="In --within '1.5:2', '1.5' is no whole number"):
        query_from(parser().parse_args([*files, "--within", "1.5:2"]))
