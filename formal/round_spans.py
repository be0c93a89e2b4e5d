# SPDX-License-Identifier: Apache-2.0
"""The rounds that the windows of two cores hold for a probe."""

from typing import NamedTuple

from amaranth import *

__all__ = ["STARS", "Span", "spans_of_two"]

#: Most stars of rounds that a core sends for a probe.
STARS = 2


class Span(NamedTuple):
    """The rounds of a probe.

    Attributes
    ----------
    begin, stars : Value
        First round, 0 or 1 after a common one, and number of stars of rounds.
    """

    begin: Value
    stars: Value

    @property
    def end(self):
        """Return the number of the round after the last star."""
        return self.begin + self.stars


def spans_of_two(bench):
    """Return the spans of two cores, and the one that both make together.

    Windows of two cores begin and end a round apart at most, and hold what is between them.
    """
    spans = [
        Span(bench.constant(1, "begin"), bench.constant(range(STARS + 1), "stars"))
        for _ in range(2)
    ]
    for span, other in (spans, spans[::-1]):
        bench.assume(span.stars <= STARS)
        bench.assume(span.end <= other.end + 1)
        bench.assume((span.begin >= other.begin) | (span.stars != 0))
    one, two = spans
    first = bench.wire(one.begin & two.begin, "first")
    last = bench.wire(Mux(one.end > two.end, one.end, two.end), "last")
    return spans, Span(first, last - first)
