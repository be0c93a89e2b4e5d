# SPDX-License-Identifier: Apache-2.0
"""Fields of tuples in words: values of matches, rounds."""

from amaranth import *
from amaranth.lib import data, enum
from amaranth.utils import bits_for, ceil_log2

from hdl.tree import tree_levels

__all__ = [
    "ROUND_BITS",
    "MatchKind",
    "combination",
    "combined_values",
    "longest_round",
    "match_layout",
    "neutral_values",
    "root_level",
    "round_of",
    "rounds_code",
    "rounds_shape",
    "stored_value_shape",
    "values_layout",
]


class MatchKind(enum.Enum, shape=2):
    """Kind of a result of a join aggregate."""

    #: What the matches of one probe are reduced to.
    VALUE = 0
    #: All values of the probes before have been sent.
    STAR = 1
    #: Answer to a control word.
    MARK = 2


def stored_value_shape(parameters):
    """Return the shape of the value that is stored beside a key."""
    return signed(parameters.engine.value_bits)


def root_level(parameters):
    """Return the number of mergers between a region and the root of the tree."""
    return len(tree_levels(parameters.cores, parameters.fan_in))


def values_layout(parameters, level):
    """Return the layout of the reductions of matches, in all regions below ``level`` mergers.

    ``count``: number of matches. ``total``: sum of their values. ``least``, ``most``: the least and
    the greatest of these values; without a match, those of :func:`neutral_values`.

    The widths are enough for any values. A region holds at most ``sub_window`` keys
    (:class:`hdl.window.tracker.Occupancy`), and a probe matches a key at most once. So the
    matches below a merger are at most the keys below it, and the sum of ``n`` numbers of ``b`` bits
    has ``b + ceil_log2(n)`` bits.
    """
    keys = min(parameters.cores, parameters.fan_in**level) * parameters.window.sub_window
    value = stored_value_shape(parameters)
    return data.StructLayout(
        {
            "count": unsigned(bits_for(keys)),
            "total": signed(value.width + ceil_log2(keys)),
            "least": value,
            "most": value,
        }
    )


def neutral_values(parameters):
    """Return the reductions of no match, which change no others that they are combined with."""
    half = 1 << parameters.engine.value_bits - 1
    return {"count": 0, "total": 0, "least": half - 1, "most": -half}


def combined_values(parts):
    """Return the reductions of several disjoint sets of matches, one at least, by name."""
    while len(parts) > 1:
        pairs = [parts[n : n + 2] for n in range(0, len(parts), 2)]
        parts = [combination(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]


def combination(a, b):
    """Return the reductions of two disjoint sets of matches, by name."""
    return {
        "count": a["count"] + b["count"],
        "total": a["total"] + b["total"],
        "least": Mux(a["least"] < b["least"], a["least"], b["least"]),
        "most": Mux(a["most"] > b["most"], a["most"], b["most"]),
    }


def match_layout(parameters, level):
    """Return the layout of a VALUE behind ``level`` mergers.

    ``probe`` counts the probes since the last star, modulo ``2 ** probe_bits``. The others are
    those of :func:`values_layout`.
    """
    values = {name: field.shape for name, field in values_layout(parameters, level)}
    return data.StructLayout({"probe": unsigned(parameters.engine.probe_bits), **values})


# A core numbers the tuples of a side from zero on as it stores them. Round ``n`` of a core is
# made of its tuples ``n * q .. n * q + q - 1``, where ``q`` is a power of two. A tuple's number
# is its place in the ring, lane first, up to the size of the ring. So some bits of the place are
# the lowest bits of the round.


#: Bits of the number of a round in a result. The rounds that the cores send at a time are two
#: neighbours at most, so two bits tell which of them is the earlier one.
ROUND_BITS = 2


def longest_round(parameters):
    """Return the logarithm of the largest number of tuples in a round: a quarter of a ring."""
    return ceil_log2(parameters.ring_rows * parameters.engine.lanes) - ROUND_BITS


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
