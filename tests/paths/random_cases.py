# SPDX-License-Identifier: Apache-2.0
"""Random joins that every path must answer alike: types, values, names, windows, by a seed."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
import random

import pyarrow as pa

from host import CountWindow, TimeWindow
from host.query.quantities import Duration, parse_duration
from host.query.queries import Query, Term
from host.reference.types import JoinType
from tests.paths.cases import INT64, Case
from tests.paths.conditions import random_condition
from tests.windows import over

__all__ = ["random_case"]

NAMES = ("t", "T", "k", "K", "a.b", "a b", "a`b", "`", "l.t", "ä", "t_right", "order", "row", "c0")
DAY = datetime(1969, 12, 31, 23, 59, 50)


def _integer(bits, low, high):
    return pa.int64() if bits == 64 else pa.int32(), lambda rng: rng.randint(low, high)


def _moment(zone, scale):
    def value(rng):
        return (DAY + scale * rng.randint(0, 30)).replace(tzinfo=zone)

    return pa.timestamp("us", None if zone is None else "UTC"), value


#: Arrow type and random value, by kind; kinds of the same first word can be compared.
ORDERS = {
    "int8": (pa.int8(), lambda rng: rng.randint(-15, 15)),
    "int64": _integer(64, -15, 15),
    "int32 far": (pa.int32(), lambda rng: rng.choice([-(1 << 31), -3, 0, 2, (1 << 31) - 1])),
    "date": (pa.date32(), lambda rng: date(1969, 12, 20) + timedelta(days=rng.randint(0, 25))),
    "stamp": _moment(None, timedelta(seconds=1)),
    "zoned": _moment(UTC, timedelta(seconds=1)),
}
EQUALS = {
    "int": _integer(32, -2, 3),
    "long": (pa.int64(), lambda rng: rng.choice([*INT64, -1, 0])),
    "text": (pa.string(), lambda rng: rng.choice(["", "a", "A", "a ", "ä"])),
    "bool": (pa.bool_(), lambda rng: rng.random() < 0.5),
    "bytes": (pa.binary(), lambda rng: rng.choice([b"", b"\0", b"a"])),
    "float": (
        pa.float64(),
        lambda rng: rng.choice([0.0, -0.0, float("nan"), float("inf"), float("-inf"), 0.1]),
    ),
    "decimal": (pa.decimal128(9, 2), lambda rng: Decimal(rng.randint(-3, 3)).scaleb(-2)),
    "date": ORDERS["date"],
}
BANDS = {
    "int": (_integer(32, -6, 6), [(-1, 2), (0, None), (None, -1), (-3, -1)]),
    "long": (
        (pa.int64(), lambda rng: rng.choice([*INT64, INT64[0] + 1, INT64[1] - 1, -1, 0, 1])),
        [(-1, 1), (1, None), (None, 0), (-(1 << 63), 5)],
    ),
    "float": (
        (
            pa.float64(),
            lambda rng: rng.choice(
                [0.0, -0.0, 0.1, 0.3, 1.5, -2.0, 1e300, *map(float, ("nan", "inf", "-inf"))]
            ),
        ),
        [(-1, 2), (0.2, None), (None, 0), (-0.1, 0.1)],
    ),
    "single": (
        (pa.float32(), lambda rng: rng.choice([0.1, 0.25, 1.5, -2.0, 3e38, float("nan")])),
        [(-1, 2), (0.25, None)],
    ),
    "decimal": (
        (pa.decimal128(12, 3), lambda rng: Decimal(rng.randint(-4000, 4000)).scaleb(-3)),
        [(Decimal("-1.5"), Decimal("0.001")), (None, 0)],
    ),
    "date": (
        ORDERS["date"],
        [(parse_duration("-48h"), parse_duration("2d")), (parse_duration("1d"), None)],
    ),
    "zoned": (ORDERS["zoned"], [(parse_duration("-1500ms"), parse_duration("3s"))]),
    "stamp": (ORDERS["stamp"], [(None, parse_duration("-1s"))]),
}


def random_case(seed: int, *, streams: bool = False, where: bool = True) -> Case:
    """Return a random join, every third with a condition, every fourth with windows in common.

    Parameters
    ----------
    seed : int
        Seed of the case.
    streams : bool
        Whether its inputs can be streams of Spark.
    where : bool
        Whether it may have a condition.
    """
    rng = random.Random(seed)
    order = "zoned" if streams else rng.choice(list(ORDERS))
    kinds = {"order": ORDERS[order]}
    terms = []
    for _ in range(rng.choice([0, 1, 1, 2])):
        kinds[f"equal {len(terms)}"] = EQUALS[rng.choice(list(EQUALS))]
        terms.append((0, 0))
    if rng.random() < 0.5:
        kind, bounds = BANDS[rng.choice(list(BANDS))]
        kinds[f"band {len(terms)}"] = kind
        terms.append(rng.choice(bounds))
    tables, names = [], []
    for side in ("left", "right"):
        chosen = rng.sample(NAMES, len(kinds) + 1)
        rows = rng.choice([0, 1, 12, 30, 30, 30]) if not streams else rng.randint(12, 30)
        columns = {
            name: pa.array(
                [None if place and rng.random() < 0.12 else value(rng) for _ in range(rows)],
                kind,
            )
            for place, (name, (kind, value)) in enumerate(zip(chosen, kinds.values(), strict=False))
        }
        columns[chosen[-1]] = pa.array([f"{side} {row}" for row in range(rows)], pa.string())
        tables.append(pa.table(columns))
        names.append(chosen)
    temporal = order in ("date", "stamp", "zoned")
    window = CountWindow(rng.choice([1, 2, 7]))
    if streams or rng.random() < 0.6:
        width = rng.choice([0, 1, 4])
        window = TimeWindow(width)
        if temporal:
            # Dates lie whole days apart, so their windows are whole days.
            seconds = width * 86_400 if order == "date" else width and width + 0.5
            window = Duration(int(seconds * 1_000_000_000))
    query = Query(
        band=tuple(
            Term(names[0][place], names[1][place], *bounds) for place, bounds in enumerate(terms, 1)
        ),
        time=(names[0][0], names[1][0]),
        **over(window),
        sorted=not streams and rng.random() < 0.3,
        suffix=rng.choice(["_2", ".r", "`", "_right of it"]),
        how=rng.choice(list(JoinType)),
    )
    if where and seed % 3 == 0:
        drawn = random.Random(f"condition {seed}")
        query = replace(query, where=random_condition(drawn, tables))
    if seed % 4 == 1 and query.is_timed:
        query = replace(query, **_windows(random.Random(f"windows {seed}"), order, query.how))
    if query.sorted:
        tables = [table.sort_by(name) for table, name in zip(tables, query.time, strict=True)]
    return Case(f"random {seed}", tables[0], tables[1], query)


def _windows(rng: random.Random, order: str, how: JoinType) -> dict[str, object]:
    """Return the words of random windows in common, over times of this kind."""
    size, advance = rng.choice([(5, 5), (5, 2), (7, 3), (6, 1), (3, 2)])
    words: dict[str, object] = {"within": size, "advance": advance}
    if order in ("date", "stamp", "zoned"):
        unit = 86_400 if order == "date" else 1
        words = {name: Duration(number * unit * 10**9) for name, number in words.items()}
    return words | {"per_window": how is JoinType.INNER and rng.random() < 0.6}
