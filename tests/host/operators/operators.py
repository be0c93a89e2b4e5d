# SPDX-License-Identifier: Apache-2.0
"""Operators that several tests describe."""

from host.expressions import maximum, where
from host.operators.windowed import Field, Key, Output, Reduction, WindowedOperator

__all__ = [
    "ALL",
    "EVERYTHING",
    "FORWARD",
    "JOIN",
    "JOIN_AGGREGATE",
    "KEYLESS",
    "SEVERAL_KEYS",
]

PRICE, ITEM = Field("price", 12), Field("item", 4, signed=False)

#: All kinds of reductions, and outputs of their own.
EVERYTHING = WindowedOperator(
    name="everything",
    size=10,
    advance=4,
    fields=[ITEM, PRICE],
    keys=[Key("item")],
    reductions=[
        Reduction("n", "count"),
        Reduction("total", "sum", "price * 2"),
        Reduction("least", "min", "price"),
        Reduction("most", "max", lambda t: where(t.price > 7, t.price, 7)),
        Reduction("seen", "reduce", "1 << (0)", combine="a | b"),
        Reduction("parity", "reduce", "price & 7", combine="a ^ b", inverse=lambda a, b: a ^ b),
    ],
    outputs=[
        Output("mean", "total", per="n"),
        Output("spread", lambda w: w.most - w.least),
        Output("state", "seen + 2 * parity + 100 * item + start - end"),
    ],
    having="n + least > -4",
)

#: Several keys of a tuple, some of which may agree or be missing.
SEVERAL_KEYS = WindowedOperator(
    name="several_keys",
    size=6,
    advance=2,
    fields=[Field(f"word{i}", 2, signed=False) for i in range(3)] + [Field("words", 2, False)],
    keys=[Key([f"word{i}", i % 2], when=lambda t, i=i: t.words > i) for i in range(3)],
    reductions=[
        Reduction("n", "count"),
        Reduction("most", "max", lambda t: maximum(t.words, 1)),
    ],
)

#: One key for all tuples, windows that do not overlap.
KEYLESS = WindowedOperator(
    name="keyless", size=5, advance=5, fields=[PRICE], reductions=[Reduction("n", "count")]
)

JOIN = WindowedOperator(
    name="join",
    size=8,
    advance=1,
    fields=[Field("x", 6), Field("y", 6)],
    right_fields=[Field("x", 6), Field("z", 6)],
    keys=[Key(i) for i in range(4)],
    instances="single",
    match=lambda l, r: (l.x - r.x <= 3) & (r.x - l.x <= 3),
    in_turns=True,
)

#: One result for each left tuple, from the right tuples that it matches.
JOIN_AGGREGATE = WindowedOperator(
    name="join_aggregate",
    size=9,
    advance=3,
    fields=[Field("x", 3), Field("k", 1, signed=False)],
    right_fields=[Field("y", 5), Field("k", 1, signed=False)],
    keys=[Key("k")],
    instances="single",
    match="l.x - r.y <= 4",
    reductions=[
        Reduction("n", "count"),
        Reduction("total", "sum", lambda l, r: r.y * l.x),
        Reduction("low", "min", "r.y"),
    ],
    outputs=[Output("n", "n"), Output("mean", "total", per="n"), Output("low", "low + k")],
    having="n != 2",
)

FORWARD = WindowedOperator(
    name="forward", size=1, advance=1, fields=[PRICE], right_fields=[PRICE], instances="single",
    keys=[Key(1), Key(2)],
)  # fmt: skip

ALL = (EVERYTHING, SEVERAL_KEYS, KEYLESS, JOIN, JOIN_AGGREGATE, FORWARD)
