# SPDX-License-Identifier: Apache-2.0
"""The language of conditions on two rows: what a text means, what is refused, and where."""

from datetime import timedelta
from decimal import Decimal
import pickle

import pyarrow as pa
import pytest

from host import Query, UsageError, join
from host.errors import ExpressionError
from host.query.conditions import Condition
from host.query.quantities import Duration
from host.query.queries import Term

ROWS = pa.table(
    {
        "t": [1, 2, 3],
        "x": pa.array([1, None, (1 << 63) - 1], pa.int64()),
        "big": pa.array([(1 << 64) - 1] * 3, pa.uint64()),
        "city": ["a", None, "b"],
        "known": [True, False, None],
        "f": [1.5, float("nan"), None],
        "d": pa.array([Decimal("1.50"), Decimal("-2"), None], pa.decimal128(30, 2)),
        "at": pa.array([0, 1_000_000, None], pa.timestamp("us")),
        "zone": pa.array([0, 1_000_000, None], pa.timestamp("us", "UTC")),
        "day": pa.array([0, 1, None], pa.date32()),
        "hour": pa.array([0, 3_600_000_000, None], pa.time64("us")),
        "from": [1, 2, 3],
    }
)


def where(text, left=ROWS, right=ROWS, **words):
    """Return the numbers of the pairs of rows that fulfil a condition."""
    query = Query(time="t", within=9, where=text, **words)
    found = join(left, right, query, device="software:")
    return sorted(zip(found["t"].to_pylist(), found["t_right"].to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("text", "canonical", "terms", "rest"),
    [
        (
            "abs(l.x - r.x) <= 3 and l.city != r.city",
            "(abs(l.x - r.x) <= 3) & (l.city != r.city)",
            [Term("x", "x", -3, 3)],
            "l.city != r.city",
        ),
        ("left.a == right.b", "l.a == r.b", [Term("a", "b")], None),
        ("r.b == l.a", "r.b == l.a", [Term("a", "b")], None),
        ("r.b - l.a <= 5", "r.b - l.a <= 5", [Term("a", "b", -5, None)], None),
        ("-1 <= l.a - r.b <= 2.5", None, [Term("a", "b", -1, 2.5)], None),
        ("l.t - r.t >= '-1s' and l.t - r.t < '5s'", None,
         [Term("t", "t", Duration(-(10**9)), Duration(5 * 10**9))], "l.t - r.t < '5s'"),
        ("l.a - r.b == 4", "l.a - r.b == 4", [Term("a", "b", 4, 4)], None),
        # Equal infinities have no difference of zero.
        ("l.a - r.b == 0", None, [Term("a", "b", 0, 0)], "l.a - r.b == 0"),
        ("l.a == r.a and abs(l.a - r.a) < 9", None, [Term("a", "a")], "abs(l.a - r.a) < 9"),
        ("l.a == l.b", "l.a == l.b", [], "l.a == l.b"),
        ("not (l.a == r.a)", "(l.a == r.a) == 0", [], "(l.a == r.a) == 0"),
        ("l.a == r.a or l.b == r.b", "(l.a == r.a) | (l.b == r.b)", [], ...),
        ("not l.known and r['from'] > +1", "(l.known == 0) & (r['from'] > 1)", [], ...),
        ("l['x'] < r.y", "l.x < r.y", [], ...),
    ],
)  # fmt: skip
def test_a_condition_brings_its_equalities_and_bands(text, canonical, terms, rest):
    query = Query(time="t", within=1, where=text)
    assert query.where == Condition(text)
    assert canonical in (None, query.where.text)
    assert Condition(query.where.text) == query.where
    assert list(query.terms) == terms
    assert query.rest == (query.where if rest is ... else rest and Condition(rest))
    assert pickle.loads(pickle.dumps(query)) == query


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda l, r: (abs(l.x - r.x) <= 3) & (l.city != r.city), None),
        (lambda l, r: ~(l["a b"] == r.c) | (l.q < -1.5), "not (l['a b'] == r.c) or l.q < -1.5"),
        (lambda l, r: l.price <= Decimal("0.5"), "l.price <= 0.5"),
        (lambda l, r: abs(l.at - r.at) <= timedelta(seconds=5), "abs(l.at - r.at) <= '5000000us'"),
    ],
    ids=["both", "odd names", "decimals", "durations"],
)
def test_a_function_of_two_rows_is_its_text(function, text):
    text = "abs(l.x - r.x) <= 3 and l.city != r.city" if text is None else text
    assert Condition.of(function) == Condition(text)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("l.x < r.x", [(1, 3)]),
        ("l.x * l.x * l.x >= r.big", [(3, 1), (3, 2), (3, 3)]),  # exact beyond 64 bits
        ("l.big - r.x == l.big - 1", [(1, 1), (2, 1), (3, 1)]),
        # What a null decides, and what it does not.
        ("l.x > 0 or r.city == 'a'", [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (3, 2), (3, 3)]),
        ("not (l.x > 5 and r.x > 0)", [(1, 1), (1, 2), (1, 3)]),
        ("l.known and not r.known", [(1, 2)]),
        ("l.known != r.known", [(1, 2), (2, 1)]),
        ("l.known == True and r.t == 1", [(1, 1)]),
        ("l.f == r.f", [(1, 1), (2, 2)]),  # NaN equals NaN
        ("l.f > r.f", [(2, 1)]),  # and is above all numbers
        ("max(l.f, 1) > 9 and r.t < 2", [(2, 1)]),
        ("l.d * 2 == 3 and r.t == 1", [(1, 1)]),
        ("l.d - 0.5 > r.d", [(1, 2)]),
        ("l.at + '1s' == r.at", [(1, 2)]),
        ("abs(l.at - r.at) * 2 == '2s'", [(1, 2), (2, 1)]),
        ("l.at >= '1970-01-01 00:00:01' and r.t == 1", [(2, 1)]),
        ("l.zone < '1970-01-01 00:00:00.5Z' and r.t == 1", [(1, 1)]),
        ("l.day == '1970-01-02' and r.day < '1970-01-02'", [(2, 1)]),
        ("l.hour > '00:30:00' and r.t == 3", [(2, 3)]),
        ("l['from'] + r['from'] == 6", [(3, 3)]),
        ("l.city < r.city", [(1, 3)]),
        ("min(l.t, r.t, 2) == 2 and l.t <= r.t", [(2, 2), (2, 3), (3, 3)]),
        ("-l.t == -3 and -(l.t - r.t) == 0", [(3, 3)]),
        ("l.t % 2 == 1 and (r.t - 4) % 3 == 1", [(1, 2), (3, 2)]),
        ("l.d % 1 == 0.5 and r.d % 0.75 == 0.25", [(1, 2)]),
        ("l.at % '2s' == '1s' and r.day % '2d' == '1d'", [(2, 2)]),
        ("(l.at - r.at) % '3s' == '2s'", [(1, 2)]),
        ("l.big % 10 == 5 and r.x % 10 == 7 and l.t == 1", [(1, 3)]),  # beyond 64 bits
    ],
)
def test_pairs_are_those_of_which_the_condition_is_true(text, pairs):
    assert where(text) == pairs


def test_rows_that_come_alone_are_those_without_a_pair():
    found = join(
        ROWS, ROWS, time="t", within=9, where="l.city != r.city", how="left_anti",
        device="software:",
    )  # fmt: skip
    assert found["t"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("text", "words", "at"),
    [
        ("abs(l.x - q) <= 3", "'q' is no column; write l.q or r.q", "q"),
        ("l.x <= 3 and r.nam == 2", "no column 'nam' in the right table", "r.nam"),
        ("l.x and r.x > 1", "l.x is of type int64, no condition", "l.x"),
        ("l.x + 1 or r.x", "'l.x + 1' is no condition; compare it", "l.x + 1"),
        ("r.x > 2 and l.x < r.city", "l.x is of type int64, r.city is of type string",
         "l.x < r.city"),
        ("r.x > 2 and l.x < r.f", "compare and compute values of one kind", "l.x < r.f"),
        ("l.t / 2 < r.t", "Div is not in the language of conditions; multiply", "l.t / 2"),
        ("l.x in (1, 2)", "In is not in the language of conditions; write == for", None),
        ("l.x == None", "null is no value; a comparison with null is never true", "None"),
        ("l.day < 'x'", "'x' is no date; write one such as '2024-01-31'", "'x'"),
        ("l.at - r.at != 5", "compare and compute values of one kind", None),
        ("abs(l.at) < '3s'", "a time has no size", "abs(l.at)"),
        ("l.known < r.known", "truth values have no order", None),
        ("open('f') == l.x", "function 'open' is not in the language", "open('f')"),
        ("l.__class__.x == 1", "is no column", "l.__class__.x"),
        ("1 < 2", "it reads no column", None),
        ("l.x <", "it is no Python expression", None),
        ("0.12345678901234567890123 < l.f", "more digits than a number here", None),
        ("abs(l.at - r.at) <= '5 parsecs'", "is not a duration", "'5 parsecs'"),
        ("l.x % r.x == 1", "% needs a positive number or a duration on its right", "l.x % r.x"),
        ("l.x % 0 == 1", "% needs a positive number", "l.x % 0"),
        ("l.f % 2 == 1", "l.f is of type double, which has no remainder by an integer", "l.f % 2"),
        ("l.at % 3 == 1", "no remainder by an integer; take it of whole numbers", "l.at % 3"),
        ("l.at % '0s' == '1s'", "a remainder is by a duration above 0", "l.at % '0s'"),
        ("~" * 300 + "(l.x < 1)" , "more than 120 of its parts lie in one another", None),
    ],
)  # fmt: skip
def test_what_is_no_condition_is_refused_with_its_place(text, words, at):
    with pytest.raises(ExpressionError) as caught:
        where(text)
    message = str(caught.value)
    assert words in message
    if at is not None:
        shown, marks = message.splitlines()[-2:]
        begin = marks.index("^")
        assert shown[begin : begin + marks.count("^")] == at


def test_what_is_neither_text_nor_function_is_refused():
    with pytest.raises(UsageError, match="where is a text such as"):
        Query(time="t", within=1, where=3)
    with pytest.raises(ExpressionError, match="its value is not known"):
        Query(time="t", within=1, where=lambda l, r: l.x < 1 and r.x < 1)


def test_the_command_takes_a_condition(tmp_path, capsys):
    import pyarrow.parquet as pq

    from host.__main__ import main

    for side in ("l", "r"):
        pq.write_table(ROWS.select(["t", "x", "city"]), tmp_path / f"{side}.parquet")
    out = tmp_path / "o.parquet"
    options = ["join", "--left", f"{tmp_path}/l.parquet", "--right", f"{tmp_path}/r.parquet"]
    options += ["--output", str(out), "--time", "t", "--within", "9", "--device", "software:"]
    assert main([*options, "--where", "l.city != r.city", "--verify", "--explain"]) == 0
    said = capsys.readouterr()
    assert "checked  by the host, on the pairs that are found: l.city != r.city" in said.out
    assert "agree with the reference join" in said.err
    assert pq.read_table(out).num_rows == 2
    out.unlink()
    assert main([*options, "--where", "l.citi != r.city"]) == 2
    assert "\n    l.citi != r.city\n    ^^^^^^\n" in capsys.readouterr().err
    assert not out.exists()
