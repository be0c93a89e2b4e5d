# SPDX-License-Identifier: Apache-2.0
"""As-of joins that every path must answer alike, or refuse alike: chosen ones, and random ones."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
import random

import pyarrow as pa

from host.query.quantities import parse_duration
from host.query.queries import AsofQuery
from host.reference.types import Direction
from tests.paths.cases import INT64
from tests.paths.random_cases import EQUALS, NAMES, ORDERS

__all__ = ["ASOF_CASES", "ASOF_REFUSED", "SPARK_TIMES", "AsofCase", "random_asof_case"]


@dataclass(frozen=True)
class AsofCase:
    """An as-of join of two tables.

    Parameters
    ----------
    name : str
        What is special about it.
    left, right : pa.Table
        The inputs.
    query : AsofQuery
        What is joined.
    words : tuple of str
        What the error says, if the join is one that must be refused.
    """

    name: str
    left: pa.Table
    right: pa.Table
    query: AsofQuery
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


def _query(time="t", **options):
    return AsofQuery(time=time, **options)


_LEFT = pa.table({"t": [5, 1, 9, 5], "k": ["b", "a", None, "a"], "x": [1, 2, 3, 4]})
_RIGHT = pa.table({"t": [6, 4, 5, 5, 20], "k": ["a", None, "a", "a", "b"], "y": [1, 2, 3, 4, 5]})
_EMPTY = _RIGHT.slice(0, 0)
_KEY = (("k", "k"),)


def _chosen():
    for direction in Direction:
        for exact in (True, False):
            yield AsofCase(
                f"ties and nulls in keys, {direction.value}, exact {exact}",
                _LEFT,
                _RIGHT,
                _query(on=_KEY, direction=direction, allow_exact_matches=exact),
            )
        yield AsofCase(
            f"no keys, {direction.value}",
            _LEFT,
            _RIGHT,
            _query(direction=direction, how="inner", within=1),
        )
        ends = pa.table({"t": pa.array([*INT64, 0], pa.int64()), "n": [0, 1, 2]})
        yield AsofCase(
            f"times as far apart as can be, {direction.value}",
            ends,
            pa.table({"t": pa.array([INT64[1], -1, INT64[0]], pa.int64())}),
            _query(direction=direction, allow_exact_matches=False, within=(1 << 63) - 1),
        )
        yield AsofCase(
            f"empty right, {direction.value}", _LEFT, _EMPTY, _query(on=_KEY, direction=direction)
        )
    yield AsofCase("empty left", _LEFT.slice(0, 0), _RIGHT, _query(on=_KEY))
    yield AsofCase("tolerance zero", _LEFT, _RIGHT, _query(on=_KEY, direction="nearest", within=0))
    yield AsofCase(
        "sorted and declared so",
        _LEFT.sort_by("t"),
        _RIGHT.sort_by("t"),
        _query(on=_KEY, sorted=True, direction="forward"),
    )
    names = ["a`b", "a.b", "a b", "`"]
    odd = pa.table([pa.array([3, 1, 2])] * 4, names=names)
    yield AsofCase(
        "backticks, dots and blanks in names",
        odd,
        odd,
        _query(("a`b", "a b"), on=[("a.b", "`"), ("`", "a.b")], suffix=".r"),
    )
    yield AsofCase(
        "integers of different widths",
        pa.table({"t": pa.array([-128, 0, 127], pa.int8()), "k": pa.array([1, 2, 1], pa.int16())}),
        pa.table({"t": pa.array([-129, 0, 128]), "k": pa.array([1, 2, 1], pa.int32())}),
        _query(on=_KEY, direction="nearest", within=1),
    )
    moments = [datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), datetime(1970, 1, 1, tzinfo=UTC)]
    stamps = pa.table({"t": pa.array(moments, pa.timestamp("us", "UTC")), "n": [1, 2]})
    yield AsofCase(
        "moments before and after 1970",
        stamps,
        stamps,
        _query(allow_exact_matches=False, within=parse_duration("1us")),
    )
    days = pa.table({"t": pa.array([date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)])})
    yield AsofCase("dates", days, days, _query(direction="nearest", within=parse_duration("24h")))
    reals = pa.table({"t": [1, 2, 3, 4], "k": [0.0, -0.0, float("nan"), None], "n": [1, 2, 3, 4]})
    yield AsofCase("NaN and zeros as keys", reals, reals, _query(on=_KEY, direction="forward"))


#: As-of joins with an answer.
ASOF_CASES = tuple(_chosen())


def _spark_times():
    for direction in Direction:
        for kind, value in ((pa.float64(), float), (pa.decimal128(9, 2), Decimal)):
            left, right = (
                pa.table({"t": pa.array(map(value, times), kind), "n": list(range(len(times)))})
                for times in (("1.5", "-2", "7"), ("1.5", "1.25", "1.75", "6"))
            )
            query = _query(direction=direction, allow_exact_matches=False, within=1)
            yield AsofCase(f"times of type {kind}, {direction.value}", left, right, query)


#: As-of joins whose times only Spark has in order, so that it answers them itself.
SPARK_TIMES = tuple(_spark_times())


def _refused():
    missing = pa.table({"t": pa.array([1, None], pa.int64()), "k": ["a", "b"]})
    null = ("is null in", "drop it, or fill the column")
    yield AsofCase("a null time on the left", missing, _RIGHT, _query(on=_KEY), null)
    yield AsofCase("a null time on the right", _LEFT, missing, _query(direction="forward"), null)
    disorder = ("Time goes backwards", "sort the input")
    yield AsofCase("disorder", _LEFT, _RIGHT, _query(on=_KEY, sorted=True), disorder)
    yield AsofCase("no such column", _LEFT, _RIGHT, _query(("t", "z")), ("'z'", "right"))
    yield AsofCase("texts as times", _LEFT, _RIGHT, _query(("k", "k")), ("left.k", "string"))
    yield AsofCase(
        "a text with a number", _LEFT, _RIGHT, _query(on=[("k", "y")]), ("left.k", "cast")
    )
    yield AsofCase(
        "a duration of numbers",
        _LEFT,
        _RIGHT,
        _query(within=parse_duration("5s")),
        ("The distance 5s is a duration",),
    )


#: As-of joins that must be refused.
ASOF_REFUSED = tuple(_refused())


def random_asof_case(seed: int, *, streams: bool = False) -> AsofCase:
    """Return a random as-of join; ``streams`` says that its inputs can be streams of Spark."""
    rng = random.Random(seed)
    order = "zoned" if streams else rng.choice(list(ORDERS))
    kinds = [
        ORDERS[order],
        *(EQUALS[rng.choice(list(EQUALS))] for _ in range(rng.choice([0, 1, 1, 2]))),
    ]
    tables, chosen = [], []
    for side in ("left", "right"):
        names = rng.sample(NAMES, len(kinds) + 1)
        rows = rng.randint(12, 30) if streams else rng.choice([0, 1, 12, 30, 30])
        columns = {
            name: pa.array(
                [None if place and rng.random() < 0.12 else value(rng) for _ in range(rows)], kind
            )
            for place, (name, (kind, value)) in enumerate(zip(names, kinds, strict=False))
        }
        columns[names[-1]] = pa.array([f"{side} {row}" for row in range(rows)], pa.string())
        tables.append(pa.table(columns))
        chosen.append(names)
    direction = rng.choice(list(Direction))
    width = rng.choice([0, 1, 4, None])
    if streams and width is None and direction is not Direction.BACKWARD:
        width = 4
    unit = timedelta(days=1) if order == "date" else timedelta(seconds=1)
    query = AsofQuery(
        time=(chosen[0][0], chosen[1][0]),
        on=[(chosen[0][place], chosen[1][place]) for place in range(1, len(kinds))],
        direction=direction,
        within=width if width is None or order.startswith("int") else width * unit,
        allow_exact_matches=rng.random() < 0.5,
        how=rng.choice(["left", "inner"]),
        sorted=not streams and rng.random() < 0.3,
        suffix=rng.choice(["_2", ".r", "`", "_right of it"]),
    )
    if query.sorted:
        tables = [table.sort_by(name) for table, name in zip(tables, query.time, strict=True)]
    return AsofCase(f"random {seed}", tables[0], tables[1], query)
