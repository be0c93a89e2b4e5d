# SPDX-License-Identifier: Apache-2.0
"""Layouts for the window of a region: pointers, spans, ends of groups, activity."""

from amaranth import *
from amaranth.lib import data
from amaranth.utils import ceil_log2

from .cells import rounds_shape
from .results import punctuation_layout

__all__ = [
    "activity_layout",
    "ending_layout",
    "pointer_layout",
    "ring_pointer",
    "span_layout",
]


def ring_pointer(lanes, rows):
    """Return the layout of a position in a ring of so many lanes and rows.

    ``row`` has one more bit than the ring needs, the wrap bit. So a full ring differs from an empty
    one, and the distance between two pointers is their difference.
    """
    return data.StructLayout(
        {"lane": unsigned(ceil_log2(lanes)), "row": unsigned(ceil_log2(rows) + 1)}
    )


def pointer_layout(parameters):
    """Return the layout of a position in a region's ring."""
    return ring_pointer(parameters.lanes, parameters.ring_rows)


def span_layout(parameters):
    """Return the layout of the window as one probe sees it.

    It begins with ``tail``, the position of the oldest key, and ends before ``head``.
    """
    pointer = pointer_layout(parameters)
    return data.StructLayout({"tail": pointer, "head": pointer})


def ending_layout(parameters):
    """Return the layout of what follows the results of a group.

    ``count`` is the number of probes in the group. ``star`` and ``mark`` say which of the two
    follow the group. With rounds, ``rounds`` is the code of their size (:mod:`hdl.words.cells`).
    """
    return data.StructLayout(
        {
            "count": range(parameters.probes + 1),
            "star": unsigned(1),
            "mark": unsigned(1),
            "punctuation": punctuation_layout(parameters),
            **({"rounds": rounds_shape(parameters)} if parameters.rounds else {}),
        }
    )


def activity_layout(parameters, regions=1):
    """Return the layout of what ``regions`` regions did in one cycle, summed over them.

    ``comparisons`` counts comparisons of a probe with a key of its window. ``busy`` counts regions
    that read a row. ``stalled`` counts regions that could not read a row because of back-pressure
    on their results. With parity, ``wrong`` counts regions that had read a flipped bit. With
    external memory, ``read`` and ``written`` count beats that regions read and wrote, ``waiting``
    regions that waited for a row of their pass, and ``refused`` regions whose memory answered with
    an error.
    """
    memory = ("read", "written", "waiting", "refused")
    return data.StructLayout(
        {
            "comparisons": range(parameters.lanes * parameters.probes * regions + 1),
            "busy": range(regions + 1),
            "stalled": range(regions + 1),
            **({"wrong": range(regions + 1)} if parameters.parity else {}),
            **dict.fromkeys(memory if parameters.is_external else (), range(regions + 1)),
        }
    )
