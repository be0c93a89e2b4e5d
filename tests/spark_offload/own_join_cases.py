# SPDX-License-Identifier: Apache-2.0
"""Random queries over columns of every type, with values as far apart as the types allow."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
import math
import random

import pyarrow as pa

from host import TimeWindow
from host.query.quantities import Duration
from host.query.queries import Query, Term
from tests.windows import over

__all__ = ["random_case"]

# Around the hour that Berlin leaves out.
START = datetime(2024, 3, 31, 1, 30)
SECOND = timedelta(seconds=1)
INF, NAN = math.inf, math.nan

#: By name: Arrow type, value at a whole number of steps, odd values, bound of so many steps.
KINDS = {
    "byte": (pa.int8(), int, [127, -128], int),
    "int": (pa.int32(), int, [2**31 - 1, -(2**31)], int),
    "long": (
        pa.int64(),
        int,
        [2**63 - 1, 2**63 - 2, -(2**63), 1 - 2**63, 2**62],
        lambda steps: steps * 2**62 if abs(steps) == 9 else steps,
    ),
    "boolean": (pa.bool_(), lambda step: step % 2 == 1, [], int),
    "date": (
        pa.date32(),
        lambda step: date(2024, 3, 31) + timedelta(days=step),
        [date(1, 1, 1), date(9999, 12, 31)],
        lambda steps: timedelta(hours=24 * steps),
    ),
    "instant": (
        pa.timestamp("us", "UTC"),
        lambda step: (START + step * 900 * SECOND).replace(tzinfo=UTC),
        [datetime(1900, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)],
        lambda steps: timedelta(minutes=15 * steps),
    ),
    "time without zone": (
        pa.timestamp("us"),
        lambda step: START + step * 900 * SECOND,
        [datetime(1900, 1, 1), datetime(2200, 1, 1)],
        lambda steps: timedelta(minutes=15 * steps),
    ),
    "interval": (
        pa.duration("us"),
        lambda step: step * timedelta(microseconds=1),
        [timedelta(days=90_000), timedelta(days=-90_000, microseconds=1)],
        lambda steps: Duration(700 * steps),
    ),
    "short decimal": (
        pa.decimal128(9, 2),
        lambda step: Decimal(step).scaleb(-2),
        [Decimal("9999999.99"), Decimal("-9999999.99")],
        lambda steps: Decimal(steps).scaleb(-3),
    ),
    "decimal": (
        pa.decimal128(18, 4),
        lambda step: Decimal(step).scaleb(-4),
        [Decimal("99999999999999.9999"), Decimal("-99999999999999.9998")],
        lambda steps: Decimal(steps).scaleb(-4),
    ),
    "float": (pa.float32(), lambda step: step / 8, [INF, -INF, NAN, 3e38, -0.0], lambda x: x / 8),
    "double": (
        pa.float64(),
        lambda step: step / 10,
        [INF, -INF, NAN, 1.7e308, -1.7e308, 5e-324, -0.0, 2.0**60],
        lambda steps: 1e308 * (steps // 9) if abs(steps) == 9 else steps / 10,
    ),
}
ORDERS = ["int", "long", "date", "instant", "time without zone", "interval"]


def random_case(seed):
    """Return (left table, right table, query); the columns have names that need quotes."""
    rng = random.Random(seed)
    order = rng.choice(ORDERS)
    terms, columns = [], [("t.`x", order, order)]
    for number in range(rng.choice([0, 1, 1, 1, 2, 2, 3])):
        left = rng.choice(list(KINDS))
        right = left
        if rng.random() < 0.4:  # another type of the same kind
            alike = [["byte", "int", "long"], ["short decimal", "decimal"], ["float", "double"]]
            right = rng.choice(next((group for group in alike if left in group), [left]))
        columns.append((f"c{number} `", left, right))
        terms.append(_term(rng, columns[-1][0], left, right))
    width = rng.choice([0, 2, 5, 9])
    window = KINDS[order][3](width)
    query = Query(
        band=tuple(terms),
        time="t.`x",
        **over(TimeWindow(window) if isinstance(window, int) else window),
    )
    tables = [
        pa.table(
            {
                "row": pa.array(range(count), pa.int32()),
                **{
                    name: pa.array(
                        [_value(rng, kinds[side], name != "t.`x") for _ in range(count)],
                        KINDS[kinds[side]][0],
                    )
                    for name, *kinds in columns
                },
            }
        )
        for side, count in enumerate((rng.choice([0, 60, 60]), rng.choice([1, 60, 60])))
    ]
    return *tables, query


def _term(rng, name, *kinds):
    if rng.random() < 0.2:
        return Term(name, name)
    bound = KINDS[rng.choice(kinds)][3]
    ends = [bound(rng.choice([-9, -3, -2, -1, 0, 0, 1, 2, 3, 9])) for _ in range(2)]
    if rng.random() < 0.9:
        ends.sort()  # otherwise they may exclude each other
    for end in (0, 1):
        if rng.random() < 0.1:
            ends[end] = None
    return Term(name, name, *ends)


def _value(rng, kind, nullable):
    _, value, odd, _ = KINDS[kind]
    if nullable and rng.random() < 0.1:
        return None
    if odd and rng.random() < 0.3:
        return rng.choice(odd)
    return value(rng.randrange(-6, 7))
