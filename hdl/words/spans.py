# SPDX-License-Identifier: Apache-2.0
"""What a region keeps and says of its window: pointers, spans, ends of groups, activity."""

from amaranth import *
from amaranth.lib import data
from amaranth.utils import ceil_log2

from .results import (
    punctuation_layout,
)

__all__ = [
    "activity_layout",
    "ending_layout",
    "pointer_layout",
    "span_layout",
]


def pointer_layout(parameters):
    """Position in a region's ring; ``row`` has one more bit than the ring needs.

    So a full ring and an empty one differ, and the distance of two pointers is their difference.
    """
    return data.StructLayout(
        {
            "lane": unsigned(ceil_log2(parameters.lanes)),
            "row": unsigned(ceil_log2(parameters.ring_rows) + 1),
        }
    )


def span_layout(parameters):
    """The window as one probe sees it: from ``tail``, the oldest key, up to but not ``head``."""
    pointer = pointer_layout(parameters)
    return data.StructLayout({"tail": pointer, "head": pointer})


def ending_layout(parameters):
    """What follows the results of a group: of how many probes, a star, a mark."""
    return data.StructLayout(
        {
            "count": range(parameters.probes + 1),
            "star": unsigned(1),
            "mark": unsigned(1),
            "punctuation": punctuation_layout(),
        }
    )


def activity_layout(parameters, regions=1):
    """What ``regions`` regions did in one cycle, summed.

    ``comparisons`` of a probe with a key of its window; regions that read a row (``busy``) and that
    could not because their results were stuck (``stalled``).
    """
    return data.StructLayout(
        {
            "comparisons": range(parameters.lanes * parameters.probes * regions + 1),
            "busy": range(regions + 1),
            "stalled": range(regions + 1),
        }
    )
