# SPDX-License-Identifier: Apache-2.0
"""What travels inside the scan engine."""

from amaranth import *
from amaranth.lib import data
from amaranth.utils import ceil_log2

from hdl.words.prepared import stored_layout
from hdl.words.spans import ending_layout, pointer_layout, span_layout

__all__ = [
    "group_layout",
    "lane_matches_layout",
    "match_layout",
    "row_layout",
    "verified_probe_layout",
]


def row_layout(parameters, shape):
    """What a region reads at once of this shape, one per lane."""
    return data.ArrayLayout(shape, parameters.lanes)


def group_layout(parameters):
    """Probes that share a pass. Each of them waits in a slot of the scanner.

    ``first`` is the first row of the pass, where the oldest probe's span begins, ``second`` the row
    after it, and ``stop`` the row after the last. From ``newest_tail`` on all probes have begun;
    until ``oldest_head`` none has ended. Without probes, ``first`` is where the window begins, and
    ``stop`` and ``newest_tail`` may be anything.
    """
    row = pointer_layout(parameters)["row"].shape
    rows = dict.fromkeys(("first", "second", "stop", "newest_tail", "oldest_head"), row)
    return data.StructLayout({**rows, "ending": ending_layout(parameters)})


def match_layout(parameters, bits):
    """Outcome of one row: ``bits`` for each lane; ``last`` if the pass ends.

    The bits are those of the probes, or a single one for all of them.
    """
    return data.StructLayout(
        {
            "matches": data.ArrayLayout(parameters.lanes, bits),
            "row": unsigned(ceil_log2(parameters.ring_rows)),
            "last": unsigned(1),
            "ending": ending_layout(parameters),
        }
    )


def lane_matches_layout(parameters, bits):
    """Outcome of one lane of a row, as in :func:`match_layout`."""
    return data.StructLayout(
        {
            "matches": unsigned(bits),
            "lane": unsigned(ceil_log2(parameters.lanes)),
            "row": unsigned(ceil_log2(parameters.ring_rows)),
            "last": unsigned(1),
            "ending": ending_layout(parameters),
        }
    )


def verified_probe_layout(parameters):
    """What a candidate is compared with: a probe's key and span."""
    return data.StructLayout({"key": stored_layout(parameters), "span": span_layout(parameters)})
