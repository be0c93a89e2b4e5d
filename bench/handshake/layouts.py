# SPDX-License-Identifier: Apache-2.0
"""Layouts and members of the chains of handshake joins.

R flows to the left, from the last core to core 0, and S to the right, as the seed draws it. The
*lane* of a side is the way that its tuples take.
"""

from amaranth import *
from amaranth.lib import data, enum, stream
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from hdl.streams.registers import StreamRegister, flagged_register
from hdl.words.inputs import bounds_layout, control_layout
from hdl.words.prepared import activity_layout, criterion_layout, stored_layout

__all__ = [
    "RING_RESERVE",
    "LaneKind",
    "chain_result",
    "connect_lanes",
    "connect_results",
    "core_members",
    "lane_flags",
    "lane_word",
    "match_layout",
    "ordinals_layout",
    "pass_layout",
    "place_shape",
    "ring_room",
    "with_criterion",
]


class LaneKind(enum.Enum, shape=3):
    """What a word of a lane is."""

    #: A tuple of the lane's side.
    TUPLE = 0
    #: The oldest tuple of the *other* side leaves its window, before the words behind this one.
    EXPIRE = 1
    #: All words before this one are to be finished: a mark follows their results.
    FENCE = 2
    #: The neighbour has taken a tuple of the other side.
    ACK = 3
    #: New bounds of a band (only of the handshake join, where cores prepare criteria).
    BOUND = 4


def with_criterion(parameters):
    """Return whether a tuple carries what it compares stored keys with beside its key.

    Only where that is another thing, in a band. In the handshake join tuples wait in memories on
    their way, which would have to be three times as wide: so there a core prepares it.
    """
    return bool(parameters.bounded) and parameters.arrangement.expedited


def lane_word(parameters):
    """A word between two cores, or between the coordinator and the chain.

    ``homeless``: the core that keeps the tuple has not been reached yet. ``before``: how many
    tuples of the other side came before it. ``restart``: numbers begin at zero behind this fence.
    """
    criterion = {}
    if with_criterion(parameters):
        criterion = {"criterion": criterion_layout(parameters)}
    bodies = {"tuple": data.StructLayout({"key": stored_layout(parameters), **criterion})}
    own = {"homeless": unsigned(1), "before": unsigned(parameters.arrangement.ordinal_bits)}
    if not parameters.arrangement.expedited:
        own = {}
        if parameters.bounded:
            control = control_layout(parameters)
            bodies["bound"] = data.StructLayout(
                {"bounds": bounds_layout(parameters), "value": control["value"].shape}
            )
    return data.StructLayout(
        {"kind": LaneKind, "restart": 1, **own, "body": data.UnionLayout(bodies)}
    )


def place_shape(parameters):
    """Place in a ring, with a wrap bit."""
    return unsigned(ceil_log2(parameters.ring_rows) + 1)


def pass_layout(parameters, *, limited=False, meets=0):
    """What a pass of one tuple over a ring is.

    From row ``first`` on ``rows`` rows are read; the oldest has the tuple of number ``oldest``.
    ``tag`` is the number of the tuple that passes. ``mark``: there is no tuple, a mark follows.
    If ``limited``, tuples from the number ``limit`` on do not count. If it meets others on their
    way (up to ``meets`` bits): ``met`` of them, from the number ``met_first`` on; ``homeless`` is
    that of the tuple that passes.
    """
    tag = unsigned(parameters.arrangement.ordinal_bits)
    limit = {"limit": tag} if limited else {}
    met = {"met_first": tag, "met": unsigned(meets), "homeless": 1} if meets else {}
    rows = range(parameters.ring_rows + 1)
    first = place_shape(parameters)
    return data.StructLayout(
        {"mark": 1, "first": first, "rows": rows, "oldest": tag, "tag": tag, **limit, **met}
    )


def match_layout(parameters):
    """Numbers of the tuple that was ``stored`` and of the one that passed; or a ``mark``."""
    tag = unsigned(parameters.arrangement.ordinal_bits)
    return data.StructLayout({"mark": 1, "stored": tag, "passing": tag})


def ordinals_layout(parameters):
    """Which tuples match: their numbers within their sides since CLEAR, modulo a power of two."""
    ordinal = unsigned(parameters.arrangement.ordinal_bits)
    return data.StructLayout({"r": ordinal, "s": ordinal})


def chain_result(parameters):
    """A result on its way out: a mark, or a pair that a tuple of ``side`` has found."""
    return data.StructLayout({"mark": 1, "side": 1, "pair": ordinals_layout(parameters)})


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
    if not parameters.arrangement.expedited:
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


#: Rows that are left free: what is stored before a register says that there is no room, and what a
#: pass may need that has not reached its queue.
RING_RESERVE = 9


def ring_room(m, parameters, head, kept, name):
    """Return a register that says whether rows from ``kept`` up to ``head`` leave room."""
    room = Signal(init=1, name=name)
    used = Signal(place_shape(parameters), name=f"{name}_used")
    m.d.comb += used.eq(head - kept)
    # While `kept` runs ahead of a head that waits for tuples that have expired, there is nothing.
    limit = parameters.ring_rows - RING_RESERVE
    m.d.sync += room.eq((used < limit) | (used >= 2 * parameters.ring_rows - RING_RESERVE))
    return room
