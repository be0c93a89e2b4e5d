# SPDX-License-Identifier: Apache-2.0
"""A core of the low-latency handshake join."""

from amaranth import *
from amaranth.lib import wiring

from hdl.local_reset import reset_nearby
from hdl.streams.delay import delayed

from .home_window import HomeWindow
from .in_flight import InFlight
from .layouts import LaneKind
from .members import connect_lanes, connect_results, core_members, lane_flags
from .ring_room import ring_room
from .segment import Segment

__all__ = ["ExpeditedCore"]


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
    See :func:`hdl.baselines.members.core_members`.
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
