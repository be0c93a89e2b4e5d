# SPDX-License-Identifier: Apache-2.0
"""Sessions: the clicks of a user between which no gap is as long as this kind of user's.

A single window instance per user slides by one unit of time, and keeps its state for as long as the
last click is nearer than the gap. When it is not, the session is over: it is put out and dropped.
"""

from host.expressions import where
from host.operators.meaning import reference_results
from host.operators.windowed import Field, Key, Output, Reduction, WindowedOperator
from host.reference.operator import Arrival

__all__ = ["LONGEST_GAP", "OPERATOR"]

#: No gap is longer than a window.
LONGEST_GAP = 30


def is_over(session):
    """Return whether no click of a user has come for as long as a gap: 30, or 10 for guests."""
    return session.end - session.last >= where(session.user < 8, LONGEST_GAP, 10)


OPERATOR = WindowedOperator(
    name="sessions",
    size=LONGEST_GAP,
    advance=1,
    fields=[Field("user", 4, signed=False), Field("bytes", 12, signed=False)],
    keys=[Key("user")],
    instances="single",
    reductions=[
        Reduction("first", "min", "timestamp"),
        Reduction("last", "max", "timestamp"),
        Reduction("clicks", "count"),
        Reduction("total", "sum", "bytes"),
    ],
    outputs=[
        Output("began", "first"),
        Output("length", "last - first"),
        Output("clicks", "clicks"),
        Output("mean", "total", per="clicks"),
    ],
    having=is_over,
    slide=lambda session: ~is_over(session),
)

if __name__ == "__main__":
    clicks = [(0, 1), (5, 9), (12, 9), (20, 1), (24, 9), (70, 1)]
    tuples = [Arrival(time, {"user": user, "bytes": 100 + time}) for time, user in clicks]
    for result in reference_results(OPERATOR, tuples):
        print(result.timestamp, *result.key, *map(str, result.values))
