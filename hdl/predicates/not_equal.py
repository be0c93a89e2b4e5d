# SPDX-License-Identifier: Apache-2.0
"""Example of a predicate: a difference beside an equality, as in patterns of fraud."""

from amaranth import *

from .own import Predicate

__all__ = ["NotEqual"]


class NotEqual(Predicate):
    """The same card, used in different cities.

    Latency: 1 cycle. Throughput: 1 comparison per cycle.
    """

    where = "l.card == r.card and l.city != r.city"

    def match(self, m, r, s):
        match = Signal(reset_less=True)
        m.d.sync += match.eq((r.card == s.card) & (r.city != s.city))
        return match
