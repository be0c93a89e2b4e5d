# SPDX-License-Identifier: Apache-2.0
"""Joins that every path must answer alike, or refuse alike, each with what is special about it."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from host import CountWindow, TimeWindow
from host.query.quantities import Duration, parse_duration
from host.query.queries import Query, Term
from host.reference.types import JoinType
from tests.windows import over

__all__ = ["CASES", "INT64", "REFUSED", "Case"]

INT64 = (-(1 << 63), (1 << 63) - 1)


@dataclass(frozen=True)
class Case:
    """A join of two tables.

    Parameters
    ----------
    name : str
        What is special about it.
    left, right : pa.Table
        The inputs.
    query : Query
        What is joined.
    words : tuple of str
        What the error says, if the join is one that must be refused.
    """

    name: str
    left: pa.Table
    right: pa.Table
    query: Query
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


def _table(**columns):
    return pa.table(columns)


def _query(*terms, time=("t", "t"), window=None, **options):
    window = TimeWindow(3) if window is None else window
    return Query(band=terms, time=time, **over(window), **options)


_LEFT = _table(t=[1, 5, 5, 9], k=["a", None, "b", "a"], x=[1, 2, None, 4])
_RIGHT = _table(t=[2, 5, 5, 20], k=["a", "b", None, "b"], x=[1, 9, 2, 4])
_KEY = Term("k", "k")
_EMPTY = _LEFT.slice(0, 0)
_NULL_ORDER = _table(t=pa.array([1, None, 5], pa.int64()), k=["a", "b", "a"], x=[1, 2, 3])
_UNSORTED = _table(t=[1, 5, 4, 9], k=["a", "b", "a", "b"], x=[1, 2, 3, 4])
_FLOATS = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.0, None]


def _adversarial():
    last = CountWindow(2)
    for how in JoinType:
        yield Case(f"nulls in keys, {how}", _LEFT, _RIGHT, _query(_KEY, how=how))
        yield Case(f"empty left, {how}", _EMPTY, _RIGHT, _query(_KEY, how=how))
        yield Case(f"empty right, {how}", _LEFT, _EMPTY, _query(_KEY, how=how, window=last))
        yield Case(f"no terms, {how}", _LEFT, _RIGHT, _query(how=how, window=last))
        yield Case(
            f"another city, near x, {how}",
            _LEFT,
            _RIGHT,
            _query(how=how, window=last, where="abs(l.x - r.x) <= 7 and l.k != r.k or l.t == r.t"),
        )
    yield Case("both empty", _EMPTY, _EMPTY, _query(_KEY, how="full"))
    ties = _table(t=[5] * 6, n=list(range(6)))
    yield Case("ties, time", ties, ties, _query(window=TimeWindow(0)))
    yield Case("ties, count", ties, ties, _query(window=CountWindow(2), how="full"))
    yield Case("sorted and declared so", _LEFT, _RIGHT, _query(_KEY, sorted=True, how="left"))
    yield Case(
        "declared sorted, one side empty", _EMPTY, _RIGHT, _query(_KEY, sorted=True, how="full")
    )
    names = ["a`b", "a.b", "a b", "`", "ä"]
    odd = pa.table([pa.array([1, 2, 3])] * 5, names=names)
    yield Case(
        "backticks, dots and spaces in names",
        odd,
        odd,
        _query(Term("a.b", "a b"), Term("`", "`", -1, 1), time=("a`b", "ä"), how="full"),
    )
    cased = pa.table({"t": [1, 2, 3], "T": [3, 2, 1], "n": [0, 1, 2]})
    yield Case(
        "names of one input that differ in case",
        cased,
        cased.rename_columns(["n", "N", "T"]),
        _query(Term("T", "n"), time=("t", "N"), how="left"),
    )
    yield Case(
        "names of both inputs that differ in case",
        _LEFT,
        _RIGHT.rename_columns(["T", "K", "X"]),
        _query(Term("k", "K"), time=("t", "T"), suffix="_2"),
    )
    yield Case(
        "a name with the suffix already",
        _table(t=[1, 2], t_right=[1, 1]),
        _table(t=[1, 2], t_right=[2, 2]),
        _query(suffix="_2"),
    )
    yield Case(
        "names of a semi join never clash",
        _table(t=[1, 2], t_right=[1, 1]),
        _table(t=[1, 2], t_right=[2, 2]),
        _query(how="left_semi"),
    )
    for low, high in ((0, 0), (-1, 1), (1, None), (None, 0), (None, None)):
        floats = _table(t=list(range(7)), x=_FLOATS, n=list(range(7)))
        yield Case(
            f"NaN, infinities and zeros, {low} .. {high}",
            floats,
            floats,
            _query(Term("x", "x", low, high), window=TimeWindow(9), how="full"),
        )
        ends = [*INT64, INT64[0] + 1, INT64[1] - 1, 0, None]
        extremes = _table(t=list(range(6)), x=pa.array(ends, pa.int64()))
        yield Case(
            f"least and greatest integers, {low} .. {high}",
            extremes,
            extremes,
            _query(Term("x", "x", low, high), window=TimeWindow(9), how="full"),
        )
    far = _table(t=pa.array([*INT64, 0, -1, INT64[1] - 1], pa.int64()), n=list(range(5)))
    yield Case("times as far apart as can be", far, far, _query(how="full"))
    yield Case("all of time in the window", far, far, _query(window=TimeWindow((1 << 64) - 1)))
    yield Case(
        "integers of different widths",
        _table(t=pa.array([-128, 0, 127], pa.int8()), x=pa.array([-1, 0, 1], pa.int16())),
        _table(t=pa.array([-129, 0, 128], pa.int64()), x=pa.array([0, -1, 1], pa.int32())),
        _query(Term("x", "x", -1, 1)),
    )
    yield Case(
        "decimals of different scales",
        _table(t=[1, 2, 3], x=pa.array(map(Decimal, ("1.10", "-0.01", "0")), pa.decimal128(9, 2))),
        _table(t=[1, 2, 3], x=pa.array(map(Decimal, ("1.1", "0", "-0.1")), pa.decimal128(5, 1))),
        _query(Term("x", "x", Decimal("-0.01"), Decimal("0.1"))),
    )
    yield Case(
        "equal decimals of different scales",
        _table(t=[1, 2, 3], x=pa.array(map(Decimal, ("1.10", "-0.01", "0")), pa.decimal128(9, 2))),
        _table(t=[1, 2, 3], x=pa.array(map(Decimal, ("1.1", "0", "-0.1")), pa.decimal128(5, 1))),
        _query(Term("x", "x"), how="full"),
    )
    early = [datetime(1, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)]
    late = [datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)]
    moments = _table(t=pa.array([*early, *late], pa.timestamp("us", "UTC")), n=[1, 2, 3, 4])
    yield Case(
        "moments before and after 1970",
        moments,
        moments,
        _query(Term("t", "t", Duration(-1000), Duration(1000)), window=parse_duration("1s")),
    )
    local = moments.set_column(0, "t", moments.column("t").cast(pa.timestamp("us")))
    yield Case(
        "times without a zone",
        local,
        local,
        _query(Term("t", "t", None, Duration(-1000)), window=parse_duration("1us"), how="full"),
    )
    days = _table(t=pa.array([date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)]), n=[1, 2, 3])
    yield Case("dates", days, days, _query(window=parse_duration("24h"), how="left_anti"))
    texts = _table(t=[1, 2, 3, 4, 5], k=["", "a", "a ", "A", None])
    yield Case("empty strings, blanks and case", texts, texts, _query(_KEY, how="full"))
    lists = _table(t=[1, 2], k=["a", "b"], x=pa.array([[1, None], None], pa.list_(pa.int32())))
    yield Case("lists are carried", lists, lists, _query(_KEY, how="right"))
    truths = _table(t=[False, True, True], k=[True, None, False])
    yield Case("booleans", truths, truths, _query(_KEY, window=TimeWindow(1), how="full"))


#: Joins with an answer.
CASES = tuple(_adversarial())


def _refused():
    null = ("'", "is null in", "drop it, or fill the column")
    for how in ("inner", "full", "left_anti"):
        yield Case(
            f"a null time on the left, {how}", _NULL_ORDER, _RIGHT, _query(_KEY, how=how), null
        )
    yield Case("a null time on the right", _LEFT, _NULL_ORDER, _query(), null)
    yield Case("a null time beside nothing", _NULL_ORDER, _EMPTY, _query(_KEY), null)
    disorder = ("Time goes backwards", "row 2", "4", "5", "sort the input")
    yield Case("disorder", _UNSORTED, _RIGHT, _query(sorted=True), disorder)
    yield Case("disorder on the right", _LEFT, _UNSORTED, _query(sorted=True, how="full"), disorder)
    yield Case("disorder of two keys", _UNSORTED, _RIGHT, _query(_KEY, sorted=True), disorder)
    yield Case("disorder beside nothing", _UNSORTED, _EMPTY, _query(_KEY, sorted=True), disorder)
    yield Case(
        "a name in another case", _LEFT, _RIGHT, _query(Term("K", "k")), ("no column 'K'", "'k'")
    )
    yield Case("no such column", _LEFT, _RIGHT, _query(time=("t", "z")), ("'z'", "right"))
    taken = _table(t=[1], T_RIGHT=[2])
    yield Case("a suffix that clashes", taken, _RIGHT, _query(), ("'t_right'", "which is taken"))
    twice = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["t", "x", "x"])
    yield Case("a name twice", twice, _RIGHT, _query(), ("left", "several columns called 'x'"))
    yield Case(
        "a name twice beside a semi join",
        _LEFT,
        twice,
        _query(how="left_semi"),
        ("right", "several columns called 'x'"),
    )
    yield Case("a text with a number", _LEFT, _RIGHT, _query(Term("k", "x")), ("'left.k'", "cast"))
    yield Case("a band of texts", _LEFT, _RIGHT, _query(Term("k", "k", 0, 1)), ("strings",))
    wheres = {"l.z != r.k": ("no column 'z'",), "l.x < r.k": ("int64", "string", "cast one")}
    for where, words in wheres.items():
        yield Case(f"the condition {where}", _LEFT, _RIGHT, _query(where=where), words)
    reals = _table(t=[1.0, 2.0], n=[1, 2])
    yield Case("floats as times", reals, reals, _query(), ("'left.t'", "double"))
    yield Case(
        "a duration of numbers",
        _LEFT,
        _RIGHT,
        _query(Term("x", "x", Duration(0), Duration(5))),
        ("5ns",),
    )
    yield Case("a window of days", _LEFT, _RIGHT, _query(window=parse_duration("1d")), ("1d",))


#: Joins that must be refused.
REFUSED = tuple(_refused())
