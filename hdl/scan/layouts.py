# SPDX-License-Identifier: Apache-2.0
"""Layouts of the scan engine."""

from amaranth import *
from amaranth.lib import data
from amaranth.utils import ceil_log2

from hdl.words.prepared import ending_layout, pointer_layout, span_layout
from hdl.words.values import rounds_shape

__all__ = [
    "group_layout",
    "lane_matches_layout",
    "match_layout",
    "rounds_members",
    "row_layout",
    "verified_probe_layout",
]


def row_layout(parameters, shape):
    """Layout of a row: one element of this shape per lane."""
    return data.ArrayLayout(shape, parameters.engine.lanes)


def group_layout(parameters):
    """Layout of a group of probes that share a pass; each probe waits in a slot of the scanner.

    ``first`` is the first row of the pass, where the span of the oldest probe begins; ``second`` is
    the row after it, and ``stop`` the row after the last. From row ``newest_tail`` on, the spans of
    all probes have begun; before row ``oldest_head``, none has ended. In a group without probes,
    ``first`` is the first row of the window, and ``stop`` and ``newest_tail`` are undefined. With
    rounds, ``tail_lane`` and ``head_lane`` are the lanes in which the span of the only probe begins
    and before which it ends.
    """
    pointer = pointer_layout(parameters)
    rows = dict.fromkeys(
        ("first", "second", "stop", "newest_tail", "oldest_head"), pointer["row"].shape
    )
    ends = ("tail_lane", "head_lane") if parameters.engine.rounds else ()
    lanes = dict.fromkeys(ends, pointer["lane"].shape)
    return data.StructLayout({**rows, **lanes, "ending": ending_layout(parameters)})


def match_layout(parameters, bits):
    """Layout of the outcome of one row: ``bits`` match bits per lane; ``last`` if the pass ends.

    The match bits are one per probe, or a single one for all probes. With rounds, ``ends`` are the
    lanes in which a round of the pass ends, and ``rounds`` is the code of their size.
    """
    return data.StructLayout(
        {
            "matches": data.ArrayLayout(parameters.engine.lanes, bits),
            **rounds_members(parameters, parameters.engine.lanes),
            "row": unsigned(ceil_log2(parameters.ring_rows)),
            "last": unsigned(1),
            "ending": ending_layout(parameters),
        }
    )


def lane_matches_layout(parameters, bits):
    """Layout of the outcome of one lane of a row, with the fields of :func:`match_layout`."""
    return data.StructLayout(
        {
            "matches": unsigned(bits),
            **rounds_members(parameters, 1),
            "lane": unsigned(ceil_log2(parameters.engine.lanes)),
            "row": unsigned(ceil_log2(parameters.ring_rows)),
            "last": unsigned(1),
            "ending": ending_layout(parameters),
        }
    )


def rounds_members(parameters, lanes):
    """Members of an outcome of some lanes that tell of rounds; none without rounds."""
    if not parameters.engine.rounds:
        return {}
    return {"ends": unsigned(lanes), "rounds": rounds_shape(parameters)}


def verified_probe_layout(parameters):
    """Layout of what a candidate is compared with: the criterion and the span of a probe."""
    _, criterion = parameters.rule.verified_layouts(parameters)
    return data.StructLayout({"key": criterion, "span": span_layout(parameters)})
