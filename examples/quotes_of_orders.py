# SPDX-License-Identifier: Apache-2.0
"""For each order, the quotes of its item in the minute before it: how many, and the best price.

A join whose matches are aggregated: an order gives one result when it comes, unless it has met
fewer than two quotes that are near its limit.
"""

import random

from host.operators.meaning import reference_results
from host.operators.windowed import Field, Key, Output, Reduction, WindowedOperator
from host.reference.operator import Arrival

__all__ = ["OPERATOR"]

ITEM = Field("item", 4, signed=False)

OPERATOR = WindowedOperator(
    name="quotes_of_orders",
    size=60,
    advance=1,
    fields=[ITEM, Field("limit", 12, signed=False)],
    right_fields=[ITEM, Field("price", 12, signed=False)],
    keys=[Key("item")],
    instances="single",
    match=lambda l, r: (l.limit - r.price >= -5) & (l.limit - r.price <= 20),
    reductions=[
        Reduction("quotes", "count"),
        Reduction("best", "min", lambda l, r: r.price),
        Reduction("total", "sum", lambda l, r: r.price),
    ],
    outputs=[
        Output("quotes", "quotes"),
        Output("best", "best"),
        Output("mean", "total", per="quotes"),
    ],
    having="quotes >= 2",
)

if __name__ == "__main__":
    generator = random.Random(1)
    tuples = [
        Arrival(
            time,
            {"item": generator.randrange(3), ("price", "limit")[n == 0]: generator.randrange(50)},
            int(n > 0),
        )
        for time in range(60)
        for n in [generator.randrange(4)]
    ]
    for result in reference_results(OPERATOR, tuples):
        print(result.timestamp, *result.key, *map(str, result.values))
