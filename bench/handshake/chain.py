# SPDX-License-Identifier: Apache-2.0
"""A chain of cores of the handshake join, or of the low-latency handshake join."""

from itertools import pairwise

from amaranth import *
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.local_reset import reset_nearby
from hdl.streams.registers import delayed
from hdl.verilog.conversion import literal
from hdl.words.prepared import activity_layout, stored_layout

from .exits import Outlet
from .layouts import (
    LaneKind,
    chain_result,
    connect_lanes,
    connect_results,
    core_members,
    lane_flags,
    lane_word,
    ring_room,
)
from .segment import PassPreparation, Segment
from .windows import FlowWindow, HomeWindow

__all__ = ["Chain", "ExpeditedCore", "HandshakeCore", "InFlight"]


class InFlight(wiring.Component):
    """Remember tuples of S until they are acknowledged, so that tuples of R meet them.

    A tuple of R that comes from the neighbour has passed it before the neighbour took the tuples of
    S that are here: acknowledgements and tuples of R share a lane. So these are those that it
    crosses on the way between the two cores, and it crosses each tuple of S in one place. The last
    core has no neighbour, and nothing in flight.

    Latency: 1 cycle. Throughput: 1 tuple per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    last : In(1)
        This is the last core.
    restart : In(1)
        There is nothing, and numbers begin at zero.
    add : In(1)
        A tuple of S with the number ``arrived`` is sent on.
    arrived : In
    key, homeless, oldest : In
        Its key, whether its core is still to come, and how many tuples of R had expired before it.
    acknowledged, expires : In(1)
        The neighbour has taken the oldest one; the oldest tuple of S leaves its window.
    tail : Out
        Number of the first one that a tuple of R may have to meet.
    met : Out(BITS)
        How many that are.
    kept : In
        Number of the first one that is still to be compared.
    room : Out(1)
        From a register; once it falls, two more may come.
    place : In(BITS)
        Lowest bits of a number.
    met_key, met_homeless, met_oldest : Out
        Of the tuple with this number, in the same cycle.
    """

    BITS = 5
    #: Tuples that may still come without room, or before what was compared with is known.
    RESERVE = 8

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        tag, key = unsigned(parameters.arrangement.ordinal_bits), stored_layout(parameters)
        super().__init__(
            {
                "last": In(1),
                "restart": In(1),
                "add": In(1),
                "arrived": In(tag),
                "key": In(key),
                "homeless": In(1),
                "oldest": In(tag),
                "acknowledged": In(1),
                "expires": In(1),
                "tail": Out(tag),
                "met": Out(self.BITS),
                "kept": In(tag),
                "room": Out(1),
                "place": In(self.BITS),
                "met_key": Out(key),
                "met_homeless": Out(1),
                "met_oldest": Out(tag),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self.elaborate_memory(m)
        tag = len(self.arrived)
        ahead = (self.arrived - self.tail)[:tag]
        used = (self.arrived - self.kept)[:tag]
        most = (1 << self.BITS) - self.RESERVE
        m.d.comb += self.met.eq(Mux(self.last | ahead[-1], 0, ahead))
        m.d.sync += self.room.eq(self.last | (used < most) | used[-1])
        # What has expired minus what was acknowledged: the tail is the greater of the two.
        lead = Signal(signed(tag))
        m.d.sync += lead.eq(lead + self.expires - self.acknowledged)
        with m.If((self.expires & (lead >= 0)) | (self.acknowledged & (lead <= 0))):
            m.d.sync += self.tail.eq(self.tail + 1)
        with m.If(self.restart):
            m.d.sync += [self.tail.eq(0), lead.eq(0)]
        return m

    def elaborate_memory(self, m):
        """Write what is sent on a cycle later; read what is asked for."""
        shape = data.StructLayout(
            {"key": self.key.shape(), "homeless": 1, "oldest": len(self.oldest)}
        )
        m.submodules.memory = rows = memory.Memory(shape=shape, depth=1 << self.BITS, init=[])
        write, read = rows.write_port(), rows.read_port(domain="comb")
        sent = {"add": self.add, "place": self.arrived[: self.BITS]}
        sent |= {name: getattr(self, name) for name in ("homeless", "oldest")}
        sent["key"] = Value.cast(self.key)
        near = delayed(m, sent, "near", flags=("add",))
        m.d.comb += [
            write.en.eq(near["add"]),
            write.addr.eq(near["place"]),
            Value.cast(write.data.key).eq(near["key"]),
            write.data.homeless.eq(near["homeless"]),
            write.data.oldest.eq(near["oldest"]),
            read.addr.eq(self.place),
            self.met_key.eq(read.data.key),
            self.met_homeless.eq(read.data.homeless),
            self.met_oldest.eq(read.data.oldest),
        ]


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
    See :func:`bench.handshake.layouts.core_members`.
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
        if self.parameters.bounded:  # bounds come with R, and are those of both sides
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


class ExpeditedCore(wiring.Component):
    """Send every tuple on at once, compare it with what is kept here, and keep it if this is home.

    A tuple is compared with those of the other side that came before it, in the core that is home
    to each. The two may be on their way at the same time, though, so that the later one passes that
    core first. They cross between two cores then, and the tuple of R finds the other one among
    those :class:`InFlight`, whichever came first. It compares itself with

    - one of S that came first, if that has still not reached its home;
    - one of S that came later, if it has not reached its own home itself and has not expired.

    Who reports a pair is known by numbers: each tuple says how many of the other side came before
    it. That is what the original sends a message for, when a tuple has been everywhere and its
    *expedition* ends. Words that expire a tuple flow with the other side's tuples, in order; with
    them every core knows the window of each tuple that passes exactly.

    One word is taken per cycle, of the lanes in turn if both have one. R waits for S nowhere: there
    is always a row for a tuple of R, as words that expire others are never far behind
    (``parameters.slack``). So R flows as long as results do, and S flows as long as R does, which
    has its acknowledgements.

    Latency: 2 cycles for a word from core to core; :attr:`latency` cycles from a tuple at the
    output of the link to its match in row 0 of an idle core's ring, one cycle less for a tuple of
    S, which meets none on the way. Throughput: 1 word per cycle; of tuples of a side, one in as
    many cycles as the other side has rows here, and one more for each tuple that it crosses.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    See :func:`bench.handshake.layouts.core_members`.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        stride = parameters.cores
        #: Kept are tuples of R, and of S.
        self.segments = [
            Segment(parameters, side=1, stride=stride, limited=True),
            Segment(parameters, side=0, stride=stride, limited=True, meets=InFlight.BITS),
        ]
        # Taken, pushed, its first row's turn, and its match queued.
        self.latency = 1 + 2 + self.segments[1].latency + 1
        super().__init__(core_members(parameters))

    def elaborate(self, platform):
        m = Module()
        self.elaborate_core(m)
        return reset_nearby(m, platform, reset=self.reset)

    def elaborate_core(self, m):
        """Connect lanes, windows and segments."""
        lanes, outputs = connect_lanes(m, self, flags=lane_flags)
        windows = [HomeWindow(self.parameters) for _ in "rs"]
        m.submodules.window_r, m.submodules.window_s = windows
        m.submodules.segment_r, m.submodules.segment_s = self.segments
        m.submodules.in_flight = in_flight = InFlight(self.parameters)
        takes = self.elaborate_taking(m, lanes, outputs, windows, in_flight)
        for side in range(2):
            self.elaborate_side(m, side, lanes[side].payload, takes[side], windows, in_flight)
        self.elaborate_output(m, lanes, outputs, takes, windows)
        self.elaborate_in_flight(m, lanes, takes, windows, in_flight)

    def elaborate_taking(self, m, lanes, outputs, windows, in_flight):
        """Take a word of one lane; return of which.

        It needs room in the segments, and in the outputs: S sends acknowledgements beside R.
        """
        rooms = [
            segment.room & ring_room(m, self.parameters, window.head, kept, f"room_{name}")
            for segment, window, kept, name in zip(
                reversed(self.segments),
                windows,
                (segment.kept for segment in self.segments),
                "rs",
                strict=True,
            )
        ]
        r, s = lanes
        s_next = Signal()  # it is S's turn if both can be taken
        can_r = r.valid & outputs[0].ready & rooms[0]
        can_s = s.valid & outputs[0].ready & outputs[1].ready & rooms[1] & in_flight.room
        takes = [Signal(name=f"take_{name}") for name in "rs"]
        m.d.comb += [
            takes[0].eq(can_r & ~(can_s & s_next)),
            takes[1].eq(can_s & ~(can_r & ~s_next)),
            r.ready.eq(takes[0]),
            s.ready.eq(takes[1]),
        ]
        with m.If(takes[0] | takes[1]):
            m.d.sync += s_next.eq(takes[0])
        m.d.sync += self.taken.eq(Cat(takes))
        return takes

    def elaborate_side(self, m, side, word, take, windows, in_flight):
        """Keep a tuple that has come home, and let it pass over what is kept of the other side."""
        own, other = windows[side], windows[1 - side]
        kept, passed = self.segments[side], self.segments[1 - side]
        arrives, marks = take & word.tuple, take & word.fence
        m.d.comb += [
            own.position.eq(self.position),
            own.arrives.eq(arrives),
            other.expires.eq(take & word.expire),
            kept.tail.eq(own.tail),
        ]
        lane = word.word
        stored = {
            "store": arrives & own.mine,
            "place": own.head,
            "key": Value.cast(lane.body.tuple.key),
        }
        stored = delayed(m, stored, f"stored_{'rs'[side]}", flags=("store",))
        m.d.comb += [
            kept.store.eq(stored["store"]),
            kept.place.eq(stored["place"]),
            Value.cast(kept.key).eq(stored["key"]),
        ]
        pass_ = {
            "mark": marks,
            "first": other.tail,
            "rows": Mux(marks, 0, other.rows),
            "oldest": other.oldest,
            "tag": own.arrived,
            "limit": lane.before,
        }
        if side == 0:
            pass_ |= {
                "met_first": in_flight.tail,
                "met": Mux(marks, 0, in_flight.met),
                "homeless": lane.homeless,
            }
        self.elaborate_pass(m, side, arrives | marks, pass_, lane.body.tuple, passed)

    def elaborate_pass(self, m, side, push, pass_, tuple_, segment):
        """Hand a pass to a segment, a cycle later."""
        criterion = tuple_.criterion if "criterion" in tuple_.shape().members else tuple_.key
        values = {"push": push, "criterion": Value.cast(criterion), **pass_}
        values = delayed(m, values, f"pass_{'rs'[side]}", flags=("push",))
        m.d.comb += [
            segment.push.eq(values["push"]),
            Value.cast(segment.criterion).eq(values["criterion"]),
            *(segment.pass_[name].eq(values[name]) for name in pass_),
        ]
        connect_results(m, self, side, segment)

    def elaborate_output(self, m, lanes, outputs, takes, windows):
        """Send words on, with what has changed; acknowledge tuples of S."""
        r, s = (lane.payload for lane in lanes)
        to_left, to_right = outputs
        acknowledges = takes[1] & s.tuple
        m.d.comb += [
            to_left.valid.eq((takes[0] & ~r.ack) | acknowledges),
            to_right.valid.eq(takes[1]),
        ]
        for lane, output, window in ((r, to_left, windows[0]), (s, to_right, windows[1])):
            m.d.comb += [
                output.payload.eq(lane.word),
                output.payload.homeless.eq(lane.word.homeless & ~window.mine),
            ]
        with m.If(takes[1]):
            m.d.comb += to_left.payload.kind.eq(LaneKind.ACK)
        # Behind the fence that restarts numbers nothing is under way.
        for window in windows:
            m.d.comb += window.restart.eq(takes[0] & r.restart)

    def elaborate_in_flight(self, m, lanes, takes, windows, in_flight):
        """Tell what is in flight to the tuples of R."""
        r, s = (lane.payload for lane in lanes)
        segment = self.segments[1]
        m.d.comb += [
            in_flight.last.eq(self.last),
            in_flight.restart.eq(takes[0] & r.restart),
            in_flight.add.eq(takes[1] & s.tuple),
            in_flight.arrived.eq(windows[1].arrived),
            in_flight.key.eq(s.word.body.tuple.key),
            in_flight.homeless.eq(s.word.homeless & ~windows[1].mine),
            in_flight.oldest.eq(windows[0].expired),
            in_flight.acknowledged.eq(takes[0] & r.ack),
            in_flight.expires.eq(takes[0] & r.expire),
            in_flight.kept.eq(segment.met_kept),
            in_flight.place.eq(segment.met_place),
            segment.met_tail.eq(in_flight.tail),
            segment.met_key.eq(in_flight.met_key),
            segment.met_homeless.eq(in_flight.met_homeless),
            segment.met_oldest.eq(in_flight.met_oldest),
        ]


class Chain(wiring.Component):
    """Let R flow from the last core to the first one, and S from the first one to the last.

    What leaves at either end is dropped.

    Latency, throughput: those of its cores.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    lanes : In(stream.Signature(lane_word(parameters))).array(2)
        Where tuples of R enter, and where those of S do.
    taken : Out(2)
        A word of either lane was taken by the core where it enters, in the cycle before.
    results : Out(stream.Signature(chain_result(parameters))).array(2 * cores)
        Of each core, of R's tuples and of S's.
    activity : Out(activity_layout(parameters)).array(2 * cores)
    resets : In(1).array(cores)
    """

    def __init__(self, parameters):
        self.parameters = parameters
        kind = ExpeditedCore if parameters.arrangement.expedited else HandshakeCore
        self.cores = [kind(parameters) for _ in range(parameters.cores)]
        self.latency = self.cores[0].latency
        count = 2 * parameters.cores
        super().__init__(
            {
                "lanes": In(stream.Signature(lane_word(parameters))).array(2),
                "taken": Out(2),
                "results": Out(stream.Signature(chain_result(parameters))).array(count),
                "activity": Out(activity_layout(parameters)).array(count),
                "resets": In(1).array(parameters.cores),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cores, most = self.cores, self.parameters.cores - 1
        for n, core in enumerate(cores):
            m.submodules[f"core_{n}"] = core
            m.d.comb += [
                core.position.eq(literal(n, core.position.shape())),
                core.last.eq(literal(int(n == most), 1)),
                core.reset.eq(self.resets[n]),
            ]
            for side in range(2):
                connect(m, core.results[side], flipped(self.results[2 * n + side]))
                m.d.comb += self.activity[2 * n + side].eq(core.activity[side])
        for left, right in pairwise(cores):
            connect(m, right.r_o, left.r_i)
            connect(m, left.s_o, right.s_i)
        connect(m, flipped(self.lanes[0]), cores[-1].r_i)
        connect(m, flipped(self.lanes[1]), cores[0].s_i)
        m.d.comb += [
            cores[0].r_o.ready.eq(literal(1, 1)),
            cores[-1].s_o.ready.eq(literal(1, 1)),
            self.taken.eq(Cat(cores[-1].taken[0], cores[0].taken[1])),
        ]
        if not self.parameters.arrangement.expedited:
            self.elaborate_held(m)
        return m

    def elaborate_held(self, m):
        """Tell every core what its neighbours keep; at the ends, no tuple is sent on."""
        cores = self.cores
        full = literal((1 << len(cores[0].held_i[0])) - 1, cores[0].held_i[0].shape())
        for n, core in enumerate(cores):
            m.d.comb += [
                core.held_i[0].eq(cores[n - 1].held_o[0] if n else full),
                core.held_i[1].eq(cores[n + 1].held_o[1] if n + 1 < len(cores) else full),
            ]
