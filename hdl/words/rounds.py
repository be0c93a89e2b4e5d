# SPDX-License-Identifier: Apache-2.0
"""Rounds of stored tuples, by which an inner order sorts the results of a probe.

A core numbers the tuples of a side from zero on as it stores them. Round ``n`` of a core is made of
its tuples ``n * q .. n * q + q - 1``, where ``q`` is a power of two. A tuple's number is its place
in the ring, lane first, up to the size of the ring. So some bits of the place are the lowest bits
of the round.
"""

from amaranth import *
from amaranth.utils import ceil_log2

__all__ = ["ROUND_BITS", "longest_round", "round_of", "rounds_code", "rounds_shape"]

#: Bits of the number of a round in a result. The rounds that the cores send at a time are two
#: neighbours at most, so two bits tell which of them is the earlier one.
ROUND_BITS = 2


def longest_round(parameters):
    """Return the logarithm of the largest number of tuples in a round: a quarter of a ring."""
    return ceil_log2(parameters.ring_rows * parameters.lanes) - ROUND_BITS


def rounds_shape(parameters):
    """Return the shape of the code for the size of rounds.

    Zero means no rounds, and ``n + 1`` rounds of ``2 ** n`` tuples.
    """
    return range(longest_round(parameters) + 2)


def rounds_code(parameters, value):
    """Return the code for rounds of ``value`` tuples.

    The rounds are of the largest power of two that divides ``value``, or of the longest ones there
    are if that is less. Results that are sorted by such rounds are sorted by rounds of ``value``
    tuples as well. Zero stands for no rounds.
    """
    longest = longest_round(parameters)
    code = Mux(value == 0, 0, longest + 1)
    for n in reversed(range(longest)):
        code = Mux(value[n], n + 1, code)
    return code


def round_of(m, parameters, code, lane, row):
    """Return the lowest bits of the round of a place in the ring; module ``m`` gets the wires."""
    place = Cat(lane, row)[: longest_round(parameters) + ROUND_BITS]
    number = Signal(ROUND_BITS, name="round_number")
    with m.Switch(code):
        for n in range(longest_round(parameters) + 1):
            with m.Case(n + 1):
                m.d.comb += number.eq(place[n : n + ROUND_BITS])
    return number
