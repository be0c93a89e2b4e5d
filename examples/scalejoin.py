# SPDX-License-Identifier: Apache-2.0
"""STRETCH's Operator 10, ScaleJoin: pairs of tuples of two windows whose x and y are close.

Every tuple goes to all keys, is compared under each of them with a share of the other window, and
is stored under one of them, in turns: that is the accelerator's join, and a key is a core.
"""

import random

from host.operators.meaning import reference_results
from host.operators.windowed import Field, Key, WindowedOperator
from host.reference.operator import Arrival

__all__ = ["CORES", "OPERATOR"]

#: Number of keys. The seed takes 1000, so that any number of threads has its share of them.
CORES = 4
FIELDS = (Field("x", bits=16), Field("y", bits=16))

OPERATOR = WindowedOperator(
    name="scalejoin",
    size=300,
    advance=1,
    fields=FIELDS,
    right_fields=FIELDS,
    keys=[Key(core) for core in range(CORES)],
    key_names=["core"],
    instances="single",
    match=lambda l, r: (abs(l.x - r.x) <= 10) & (abs(l.y - r.y) <= 10),
    in_turns=True,
)

if __name__ == "__main__":
    generator = random.Random(1)
    tuples = [
        Arrival(time, {"x": generator.randrange(99), "y": generator.randrange(99)}, time % 2)
        for time in range(60)
    ]
    for result in reference_results(OPERATOR, tuples):
        print(result.timestamp, *result.values)
