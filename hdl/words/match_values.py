# SPDX-License-Identifier: Apache-2.0
"""Values of a join aggregate: what the matches of a probe are reduced to, and how wide it is."""

from amaranth import *
from amaranth.lib import data, enum
from amaranth.utils import bits_for, ceil_log2

from hdl.tree import tree_levels

__all__ = [
    "MatchKind",
    "combination",
    "combined_values",
    "match_layout",
    "neutral_values",
    "root_level",
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
    return signed(parameters.value_bits)


def root_level(parameters):
    """Return the number of mergers between a region and the root of the tree."""
    return len(tree_levels(parameters.cores, parameters.fan_in))


def values_layout(parameters, level):
    """Return the layout of the reductions of matches, in all regions below ``level`` mergers.

    ``count``: number of matches. ``total``: sum of their values. ``least``, ``most``: the least and
    the greatest of these values; without a match, those of :func:`neutral_values`.

    The widths are enough for any values. A region holds at most ``sub_window`` keys
    (:class:`hdl.window.occupancy.Occupancy`), and a probe matches a key at most once. So the
    matches below a merger are at most the keys below it, and the sum of ``n`` numbers of ``b`` bits
    has ``b + ceil_log2(n)`` bits.
    """
    keys = min(parameters.cores, parameters.fan_in**level) * parameters.sub_window
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
    half = 1 << parameters.value_bits - 1
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
    return data.StructLayout({"probe": unsigned(parameters.probe_bits), **values})
