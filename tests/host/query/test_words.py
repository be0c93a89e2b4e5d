# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace
from datetime import timedelta
import pickle

from hypothesis import given
from hypothesis import strategies as st
import pyarrow as pa
import pytest

from host import CountWindow, TimeWindow, UsageError, open_device
from host.__main__ import main, parser
from host.cli.arguments import query_from
from host.query.quantities import Duration, parse_duration
from host.query.queries import AggregateQuery, AsofQuery, Query, Term
from host.query.words import RENAMED
from host.session.join import join_tables

ROWS = pa.table({"t": [0, 3, 4, 7, 9, 12]})
FILES = ["--left", "a.csv", "--right", "b.csv", "--output", "c.csv"]
KINDS = {
    Query: {"time": "t", "rows": 1},
    AsofQuery: {"time": "t"},
    AggregateQuery: {"time": "t", "window": 1, "aggregates": {"n": "count"}},
}


@given(ends=st.tuples(st.integers(-6, 6), st.integers(-6, 6)).map(sorted))
def test_pairs_are_those_whose_difference_lies_between_the_ends(ends):
    query = Query(time="t", within=tuple(ends))
    with open_device("software:") as device:
        pairs = join_tables(ROWS, ROWS, query, device).table
    times = ROWS["t"].to_pylist()
    expected = [(a, b) for a in times for b in times if ends[0] <= a - b <= ends[1]]
    assert sorted(tuple(row.values()) for row in pairs.to_pylist()) == sorted(expected)


def test_equal_ends_need_no_term():
    assert Query(time=("t", "u"), within=(-5, 5)).terms == ()
    assert Query(time=("t", "u"), within=(-5, 5)).window == TimeWindow(5)
    assert Query(time=("t", "u"), within=("-5s", timedelta(seconds=5))).terms == ()
    query = Query(time=("t", "u"), within=("-5s", Duration(0)))
    assert str(query.window) == "5s"
    assert [str(term) for term in query.terms] == ["-5s <= left.t - right.u <= 0s"]


@pytest.mark.parametrize("within", ["5s", "5 seconds", "INTERVAL 5 SECONDS", timedelta(seconds=5)])
def test_a_width_is_a_duration_in_any_spelling(within):
    assert Query(time="t", within=within) == Query(time="t", within=Duration(5_000_000_000))
    assert AsofQuery(time="t", within=within).within == Duration(5_000_000_000)


def test_forms_of_a_word_mean_the_same():
    plain = Query(time=("t", "t"), on=[("k", "k")], band=[Term("x", "x", -1, 1)], rows=3)
    assert Query(time="t", on="k", band={"x": (-1, 1)}, rows=3) == plain
    assert Query(time=["t", "t"], on=["k"], band=[("x", "x", -1, 1)], rows=3) == plain
    assert plain.window == CountWindow(3)
    assert [str(term) for term in plain.terms] == [
        "left.k = right.k", "-1 <= left.x - right.x <= 1",
    ]  # fmt: skip
    for query in (plain, Query(time="t", within="5s", sorted="partitions")):
        assert replace(query) == query == pickle.loads(pickle.dumps(query))
        assert hash(query) == hash(replace(query))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"within": (1, 0)}, "low is 1 and high is 0; swap them"),
        ({"within": (-5, "1s")}, "two numbers or two durations, not -5 and 1s"),
        ({"within": (1, 2, 3)}, r"one length, or \(low, high\) for"),
        ({"within": -1}, "within must be a duration or a whole number of at least 0.*, not -1"),
        ({"within": "-1s"}, "at least 0, or .low, high. of such that may be negative, not '-1s'"),
        ({"within": True}, "not True"),
        ({"within": 1.5}, "not 1.5"),
        ({"within": "5"}, "no unit"),
        ({"within": "1 month"}, "within '1 month' is not a duration: a month has no fixed length"),
        ({"within": (1, None)}, r"within must be .*not \(1, None\)"),
        ({}, "exactly one of within .* and rows .*, not neither"),
        ({"within": 5, "rows": 5}, "not both within=5 and rows=5"),
        ({"rows": 0}, "rows must be a whole number of at least 1, not 0"),
        ({"rows": 1, "time": ("t", "t", "t")}, "time must be a column or a .left, right. pair"),
        ({"rows": 1, "on": ("a", "b")}, r"write \[\('a', 'b'\)\] or \['a', 'b'\]"),
        ({"rows": 1, "on": [3]}, "on lists columns and .left, right. pairs, not 3"),
        ({"rows": 1, "band": "x"}, "band must be a mapping or a list of tuples, not 'x'"),
        ({"rows": 1, "band": [("x", 1, 2)]}, "band lists .left, right, low, high. tuples"),
        ({"rows": 1, "band": {"x": 1}}, "band maps a column or a .left, right. pair to"),
        ({"rows": 1, "band": {"x": ("soon", None)}}, "In band .'x', 'x'., the low bound 'soon'"),
        ({"rows": 1, "sorted": "files"}, "sorted is True, False or 'partitions'"),
    ],
)
def test_a_value_that_will_not_do_is_named(given, said):
    with pytest.raises(UsageError, match=said):
        Query(**{"time": "t"} | given)


@pytest.mark.parametrize(
    ("kind", "word"),
    [(kind, word) for kind in KINDS for word in RENAMED if word not in kind.__dataclass_fields__],
)
def test_another_word_is_answered_with_the_word_of_the_kit(kind, word):
    for words in ({}, KINDS[kind]):  # whether or not the right words are there too
        with pytest.raises(UsageError, match=f"^{word} is called {RENAMED[word].words[0]}") as told:
            kind(**words | {word: "t"})
        assert str(told.value).endswith(f"here: {RENAMED[word].meaning}.")


@pytest.mark.parametrize("command", ["join", "asof", "aggregate"])
@pytest.mark.parametrize("word", [word for word in RENAMED if word != "window"])
def test_a_command_answers_another_word_likewise(capsys, command, word):
    option = f"--{word.replace('_', '-')}"
    with pytest.raises(SystemExit) as ended:
        main([command, option, "t"])
    assert ended.value.code == 2
    assert f"{option} is called --{RENAMED[word].words[0]}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert option not in capsys.readouterr().out.split()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_time_must_be_given(kind):
    with pytest.raises(UsageError, match="^time is missing: .*; on are columns that are equal"):
        kind(on="t", **{word: value for word, value in KINDS[kind].items() if word != "time"})


def test_the_command_line_takes_both_ends():
    files = ["join", *FILES, "--time", "t:u"]
    query = query_from(parser().parse_args([*files, "--within=-5s:0s"]))
    assert str(query) == "-5s <= left.t - right.u <= 0s, within |left.t - right.u| <= 5s"
    assert query == Query(time=("t", "u"), within=(parse_duration("-5s"), "0s"))
    with pytest.raises(UsageError, match="In --within '1.5:2', '1.5' is no whole number"):
        query_from(parser().parse_args([*files, "--within", "1.5:2"]))
