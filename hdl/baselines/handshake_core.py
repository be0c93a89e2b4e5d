# SPDX-License-Identifier: Apache-2.0
"""A core of the handshake join."""

from amaranth import *
from amaranth.lib import wiring

from hdl.local_reset import reset_nearby
from hdl.streams.delay import delayed

from .flow_window import FlowWindow
from .layouts import LaneKind
from .members import connect_lanes, connect_results, core_members, lane_flags
from .outlet import Outlet
from .pass_preparation import PassPreparation
from .ring_room import ring_room
from .segment import Segment

__all__ = ["HandshakeCore"]


class HandshakeCore(wiring.Component):
    """Compare a tuple that comes with what is here of the other side, keep it, send it on later.

    A core sends its oldest tuple on when it holds more of that side than the neighbour that gets
    it. So the tuples of a window spread evenly over the chain, whatever the window is, and those
    that expire are at the end of it: a word that expires one waits there until the tuple has come.

    Two tuples could cross between two cores without being compared. So a tuple of R that has been
    sent on stays until the neighbour has taken it, which its acknowledgement says: it comes in one
    lane with the tuples of S, of which those before it were sent without having met the tuple.

    One thing happens per cycle: a tuple is sent, or a word is taken, of S before R. S waits for R
    nowhere inside the chain, and R for S and for its own lane alone, so neither stops the other.

    Latency: 2 cycles for a word from core to core; a core that is idle sends a tuple on 2 cycles
    after it got another one, or 5 if it holds none else; :attr:`latency` cycles from a tuple at the
    output of the link to its match in row 0 of an idle core's ring. Throughput: 1 word per cycle; a
    tuple of a side in as many cycles as the other side has rows here, and one more if a tuple of
    the other side is read meanwhile, to be sent on.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    See :func:`hdl.baselines.members.core_members`.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        #: Of tuples of R, and of S.
        self.preparations = [PassPreparation(parameters, side=side) for side in range(2)]
        reserve = 3 + self.preparations[0].latency
        #: Kept are tuples of R, and of S.
        self.segments = [Segment(parameters, side=1 - side, reserve=reserve) for side in range(2)]
        self.latency = self.preparations[0].latency + 2 + self.segments[0].latency + 1
        super().__init__(core_members(parameters))

    def elaborate(self, platform):
        m = Module()
        self.elaborate_core(m)
        return reset_nearby(m, platform, reset=self.reset)

    def elaborate_core(self, m):
        """Connect lanes, windows, segments and outlets."""
        lanes, outputs = connect_lanes(m, self, flags=self.lane_flags)
        windows = [FlowWindow(self.parameters) for _ in "rs"]
        outlets = [Outlet(self.parameters) for _ in "rs"]
        for n, name in enumerate("rs"):
            m.submodules[f"window_{name}"] = windows[n]
            m.submodules[f"outlet_{name}"] = outlets[n]
            m.submodules[f"segment_{name}"] = self.segments[n]
            m.submodules[f"preparation_{name}"] = self.preparations[n]
        takes, sends = self.elaborate_turns(m, lanes, outputs, windows, outlets)
        restart = takes[0] & lanes[0].payload.restart
        for side in range(2):
            self.elaborate_window(m, side, lanes, takes, sends, windows[side], restart)
            self.elaborate_pass(m, side, lanes, takes[side], windows)
            self.elaborate_outlet(m, side, windows[side], outlets[side])
        self.elaborate_output(m, lanes, outputs, takes, sends, outlets)

    def lane_flags(self, lane):
        """Return what a core wants to know of a word; anything while there is none."""
        return {**lane_flags(lane), "bound": lane.payload.kind == LaneKind.BOUND}

    def elaborate_turns(self, m, lanes, outputs, windows, outlets):
        """Choose what happens in a cycle; return which lane's word is taken, and whose is sent.

        Tuples of R are acknowledged in the lane of S, which has to be ready for that.
        """
        r, s = lanes
        to_left, to_right = (output.ready for output in outputs)
        rooms, wants = [], []
        for side, name in enumerate("rs"):
            window, kept = windows[side], self.segments[side].kept
            ring = ring_room(m, self.parameters, window.head, kept, f"room_{name}")
            rooms.append(self.segments[1 - side].room & ring)
            wanted = Signal(name=f"wants_{name}")
            m.d.sync += [
                wanted.eq(window.held > self.held_i[side]),
                self.held_o[side].eq(window.held),
            ]
            wants.append(wanted & outlets[side].valid)
        present = [window.held.any() for window in windows]
        able = [
            wants[1] & to_right,
            s.valid & rooms[1] & to_right & (~s.payload.expire | present[0]),
            wants[0] & to_left,
            r.valid & rooms[0] & to_right & to_left & (~r.payload.expire | present[1]),
        ]
        chosen = Signal(4)
        m.d.comb += chosen.eq(Cat(able) & ~(Cat(able) - 1)[:4])
        send_s, take_s, send_r, take_r = chosen
        m.d.comb += [r.ready.eq(take_r), s.ready.eq(take_s)]
        m.d.sync += self.taken.eq(Cat(take_r, take_s))
        return (take_r, take_s), (send_r, send_s)

    def elaborate_window(self, m, side, lanes, takes, sends, window, restart):
        """Count tuples of a side, and keep those that come."""
        own, other = lanes[side].payload, lanes[1 - side].payload
        arrives = takes[side] & own.tuple
        expires = takes[1 - side] & other.expire
        acknowledged = takes[1] & lanes[1].payload.ack
        segment = self.segments[side]
        m.d.comb += [
            window.restart.eq(restart),
            window.arrives.eq(arrives),
            window.leaves.eq(sends[side] | expires),
            window.releases.eq(window.leaves if side else acknowledged | expires),
            segment.tail.eq(window.tail),
        ]
        key = Value.cast(own.word.body.tuple.key)
        stored = {"store": arrives, "place": window.head[: len(segment.place)], "key": key}
        stored = delayed(m, stored, f"stored_{'rs'[side]}", flags=("store",))
        m.d.comb += [
            segment.store.eq(stored["store"]),
            segment.place.eq(stored["place"]),
            Value.cast(segment.key).eq(stored["key"]),
        ]

    def elaborate_pass(self, m, side, lanes, take, windows):
        """Let a tuple that comes pass over what is here of the other side; a fence is a mark."""
        word, other = lanes[side].payload, windows[1 - side]
        preparation, segment = self.preparations[side], self.segments[1 - side]
        m.d.comb += [
            preparation.push.eq(take & (word.tuple | word.fence)),
            preparation.key.eq(word.word.body.tuple.key),
            preparation.pass_.mark.eq(word.fence),
            preparation.pass_.first.eq(other.tail),
            preparation.pass_.rows.eq(Mux(word.fence, 0, other.rows)),
            preparation.pass_.oldest.eq(other.tail),
            preparation.pass_.tag.eq(windows[side].head),
            segment.push.eq(preparation.pushed),
            segment.pass_.eq(preparation.prepared),
            segment.criterion.eq(preparation.criterion),
        ]
        if self.parameters.comparator == "band":  # bounds come with R, and are those of both sides
            r = lanes[0].payload
            bound = r.word.body.bound
            m.d.comb += [
                preparation.bound.eq(lanes[0].ready & r.bound),
                preparation.bounds.eq(bound.bounds),
                preparation.value.eq(bound.value),
            ]
        connect_results(m, self, side, segment)

    def elaborate_outlet(self, m, side, window, outlet):
        """Read the oldest tuple of a side ahead."""
        segment = self.segments[side]
        m.d.comb += [
            outlet.readable.eq(window.readable),
            outlet.leaves.eq(window.leaves),
            outlet.fetched.eq(segment.fetched),
            segment.fetch.eq(outlet.fetch),
            segment.fetch_place.eq(window.following),
        ]

    def elaborate_output(self, m, lanes, outputs, takes, sends, outlets):
        """Send tuples, acknowledgements of tuples of R, fences and bounds."""
        (r, s), (to_left, to_right) = (lane.payload for lane in lanes), outputs
        acknowledges = takes[0] & r.tuple
        m.d.comb += [
            to_left.valid.eq(sends[0] | (takes[0] & (r.fence | r.bound))),
            to_right.valid.eq(sends[1] | acknowledges | (takes[1] & s.fence)),
        ]
        for side, (lane, output) in enumerate(((r, to_left), (s, to_right))):
            m.d.comb += output.payload.eq(lane.word)
            with m.If(sends[side]):
                m.d.comb += [
                    output.payload.kind.eq(LaneKind.TUPLE),
                    output.payload.body.tuple.key.eq(outlets[side].key),
                ]
        with m.If(acknowledges):
            m.d.comb += to_right.payload.kind.eq(LaneKind.ACK)
