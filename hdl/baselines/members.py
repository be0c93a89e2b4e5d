# SPDX-License-Identifier: Apache-2.0
"""What both kinds of cores of a chain are to it."""

from amaranth import *
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.streams.registers import StreamRegister, flagged_register
from hdl.words.spans import activity_layout

from .layouts import LaneKind, chain_result, lane_word, place_shape

__all__ = ["connect_lanes", "connect_results", "core_members", "lane_flags"]


def core_members(parameters):
    """Return the members of a core.

    ``position`` : In
        Number of the core.
    ``last`` : In(1)
        It is the last one, where R enters and S leaves.
    ``r_i``, ``s_i`` : In(stream.Signature(lane_word(parameters)))
        From the right neighbour, and from the left one.
    ``r_o``, ``s_o`` : Out(stream.Signature(lane_word(parameters)))
        To the left neighbour, and to the right one.
    ``held_i``, ``held_o`` : In, Out
        Of the handshake join only, out of registers. How many tuples that it would not send on the
        neighbour keeps that tuples are sent to, for each side (0: R, 1: S).
    ``taken`` : Out(2)
        A word of R's lane (bit 0), of S's lane (bit 1) was taken in the cycle before.
    ``results`` : Out(stream.Signature(chain_result(parameters))).array(2)
        What tuples of R have found, and tuples of S.
    ``activity`` : Out(activity_layout(parameters)).array(2)
    ``reset`` : In(1)
        Of all registers.
    """
    lane = stream.Signature(lane_word(parameters))
    held = {}
    if parameters.architecture == "handshake":
        shape = place_shape(parameters)
        held = {"held_i": In(shape).array(2), "held_o": Out(shape).array(2)}
    return {
        "position": In(range(max(2, parameters.cores))),
        "last": In(1),
        "r_i": In(lane),
        "r_o": Out(lane),
        "s_i": In(lane),
        "s_o": Out(lane),
        **held,
        "taken": Out(2),
        "results": Out(stream.Signature(chain_result(parameters))).array(2),
        "activity": Out(activity_layout(parameters)).array(2),
        "reset": In(1),
    }


def lane_flags(lane):
    """Return what a core wants to know of a word; anything while there is none."""
    kind = lane.payload.kind
    return {
        "tuple": kind == LaneKind.TUPLE,
        "expire": kind == LaneKind.EXPIRE,
        "fence": kind == LaneKind.FENCE,
        "ack": kind == LaneKind.ACK,
        "restart": (kind == LaneKind.FENCE) & lane.payload.restart,
    }


def connect_lanes(m, core, *, flags):
    """Put a register at both ends of each lane; return the words that come, and where they go.

    ``flags`` returns what the core wants to know of a word, as :func:`lane_flags` does.
    """
    lanes, outputs = [], []
    for name in "rs":
        arriving = getattr(core, f"{name}_i")
        lanes.append(flagged_register(m, f"input_{name}", arriving, flags=flags))
    for name in "rs":
        m.submodules[f"output_{name}"] = output = StreamRegister(lane_word(core.parameters))
        connect(m, output.o, flipped(getattr(core, f"{name}_o")))
        outputs.append(output.i)
    return lanes, outputs


def connect_results(m, core, side, segment):
    """Lead what tuples of ``side`` find in a segment to the output of a core."""
    results, match = core.results[side], segment.results.payload
    pair = results.payload.pair
    passing, stored = (pair.s, pair.r) if side else (pair.r, pair.s)
    m.d.comb += [
        results.valid.eq(segment.results.valid),
        results.payload.mark.eq(match.mark),
        results.payload.side.eq(side),
        passing.eq(match.passing),
        stored.eq(match.stored),
        segment.results.ready.eq(results.ready),
        core.activity[side].eq(segment.activity),
    ]
