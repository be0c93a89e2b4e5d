# SPDX-License-Identifier: Apache-2.0
"""Proofs about the link between two neighbouring cores of a chain, in both directions.

The cores are those of the kit but for their segments. These may have room or none at any time, so
every stall of a pass and of its results is among the behaviours.
"""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import connect

from hdl.baselines.expedited_core import ExpeditedCore
from hdl.baselines.flow_window import FlowWindow
from hdl.baselines.handshake_core import HandshakeCore
from hdl.baselines.layouts import LaneKind

from .bench import Bench
from .proof import Proof
from .small import chain_parameters
from .stream_rules import answers_within, keeps_order, offer, take

__all__ = ["PROOFS"]

R, S = 0, 1


class FreeSegment(wiring.Component):
    """The ports of a segment, which the bench drives."""

    def elaborate(self, platform):
        return Module()


class Link:
    """Two cores side by side; claims about the words of both lanes between them.

    Attributes
    ----------
    bench : Bench
    left, right : Component
    enters : list of Signal
        A word of R enters the right core's register, and one of S the left core's.
    """

    def __init__(self, kind, architecture, *, kinds):
        self.bench = bench = Bench()
        self.left, self.right = (
            kind(chain_parameters(architecture, cores=3, tag_bits=9)) for _ in range(2)
        )
        for n, core in enumerate((self.left, self.right)):
            core.segments = [FreeSegment(segment.signature) for segment in core.segments]
            bench.add(core, ("left", "right")[n])
            bench.set(core.position, n)
            self.free(core)
        connect(bench.m, self.right.r_o, self.left.r_i)
        connect(bench.m, self.left.s_o, self.right.s_i)
        ways = self.right.r_i, self.left.s_i
        self.enters = [offer(bench, stream) for stream in ways]
        for stream, allowed in zip(ways, kinds, strict=True):
            bench.assume(Cat(stream.payload.kind == kind for kind in allowed).any())
            bench.assume(~stream.payload.restart)
        self.leaves = [take(bench, self.left.r_o, "R"), take(bench, self.right.s_o, "S")]
        self.keeps_words(R, self.right, self.left)
        self.keeps_words(S, self.left, self.right)

    def free(self, core):
        """Let the segments of a core have room at any time, and read anything."""
        for segment in core.segments:
            for name in ("room", "kept", "met_kept", "fetched"):
                if hasattr(segment, name):
                    port = Value.cast(getattr(segment, name))
                    self.bench.m.d.comb += port.eq(self.bench.any(len(port), name))

    def keeps_words(self, lane, sender, receiver):
        """Claim that one core takes the words that the other one puts into a lane."""
        bench, name = self.bench, "RS"[lane]
        output = bench.inside(sender, "outputs")[lane]
        bench.claim(f"what is put into the lane of {name} has room", ~output.valid | output.ready)
        at_hand = bench.inside(receiver, "lanes")[lane]
        got = bench.wire(at_hand.valid & at_hand.ready)
        words = keeps_order(
            bench, f"the lane of {name}", output.valid, output.payload, got,
            at_hand.payload.word, most=4,
        )  # fmt: skip
        bench.claim(
            f"only a word of {name} that is there is taken", ~self.takes(receiver, lane) | got
        )
        stuck = at_hand.ready & ~at_hand.valid & (words.level != 0)
        answers_within(bench, f"a word of {name} comes to the other core", stuck, 2)

    def takes(self, core, lane):
        """Return whether a core takes a word of a lane."""
        return self.bench.inside(core, "takes")[lane]

    def takes_one(self, core, lane, flag):
        """Return whether a core takes a word of a lane that has a flag."""
        word = self.bench.inside(core, "lanes")[lane].payload
        return self.bench.wire(self.takes(core, lane) & word[flag])

    def waits(self, core, lane):
        """Return whether a core does not take a word of a lane, which has come and has room."""
        at_hand, room = (self.bench.inside(core, name)[lane] for name in ("lanes", "rooms"))
        return self.bench.wire(at_hand.valid & room & ~self.takes(core, lane))

    def acknowledged(self, stream, entered, sent):
        """Assume that only what has been sent is acknowledged; ``entered`` brings the words."""
        bench = self.bench
        owed = bench.register(8, "owed")
        is_ack = stream.payload.kind == LaneKind.ACK
        bench.next(owed.eq(owed + sent - (entered & is_ack)))
        bench.assume(~stream.valid | ~is_ack | (owed != 0))


def chosen(bench, event, number, allowed):
    """Choose one of the tuples that an event brings; return whether, and its number."""
    known, held = bench.register(1, "known"), bench.register(len(number), "number")
    choose = bench.wire(event & allowed & ~known & bench.any(1, "choose"))
    bench.next(known.eq(known | choose), held.eq(Mux(choose, number, held)))
    return known, held


def since(bench, event):
    """Return whether something has happened before."""
    happened = bench.register(1, "happened")
    bench.next(happened.eq(happened | event))
    return happened


def among(number, first, count):
    """Return whether a number is one of ``count`` from ``first`` on."""
    return (number - first)[: len(number)] < count


def handshake_link():
    """Two cores in the middle of a handshake join."""
    tuples = [LaneKind.TUPLE, LaneKind.FENCE]
    link = Link(HandshakeCore, "handshake", kinds=(tuples, [*tuples, LaneKind.ACK]))
    bench, left, right = link.bench, link.left, link.right
    bench.set(left.held_i[R], bench.any(len(left.held_i[R]), "held"))
    bench.set(right.held_i[S], bench.any(len(right.held_i[S]), "held"))
    bench.set(left.held_i[S], right.held_o[S])
    bench.set(right.held_i[R], left.held_o[R])
    sent = bench.wire(link.leaves[R] & (left.r_o.payload.kind == LaneKind.TUPLE))
    link.acknowledged(left.s_i, link.enters[S], sent)
    for core, name in ((left, "left"), (right, "right")):
        events = Cat(*bench.inside(core, "takes"), *bench.inside(core, "sends"))
        bench.claim(f"the {name} core does one thing at a time", (events & (events - 1)) == 0)
    s_goes_on(link)
    windows = [bench.inside(core, "windows") for core in (left, right)]
    met_once(link, windows)
    return bench


def s_goes_on(link):
    """Claim that S waits for nothing but its own lane, and R for nothing but both lanes."""
    bench, left, right = link.bench, link.left, link.right
    # A core sends a tuple in every fourth cycle at most, and takes words in between.
    free = [bench.wire(bench.inside(core, "outputs")[S].ready) for core in (left, right)]
    answers_within(bench, "S waits for its own lane only", link.waits(right, S) & free[1], 1)
    ready = bench.wire(Cat(bench.inside(left, "outputs")[lane].ready for lane in (R, S)).all())
    idle = ~Cat(*bench.inside(left, "takes"), *bench.inside(left, "sends")).any()
    answers_within(
        bench, "R waits for S and for both lanes only", link.waits(left, R) & ready & idle, 0
    )


def met_once(link, windows):
    """Claim that a tuple of R and one of S that come to each other's core are compared once.

    One of R is chosen when the right core takes it, and one of S when the left core does; each
    before the other core has taken the other tuple.
    """
    bench, left, right = link.bench, link.left, link.right
    (left_r, left_s), (right_r, right_s) = windows
    r_came, s_came = bench.register(1, "r_came"), bench.register(1, "s_came")
    r_known, r = chosen(bench, link.takes_one(right, R, "tuple"), right_r.head, ~s_came)
    s_known, s = chosen(bench, link.takes_one(left, S, "tuple"), left_s.head, ~r_came)
    r_comes = bench.wire(r_known & link.takes_one(left, R, "tuple") & (left_r.head == r))
    s_comes = bench.wire(s_known & link.takes_one(right, S, "tuple") & (right_s.head == s))
    bench.next(r_came.eq(r_came | r_comes), s_came.eq(s_came | s_comes))
    of_r, of_s = left.preparations[R].pass_, right.preparations[S].pass_
    meets = [
        bench.wire(r_comes & s_known & among(s, of_r.oldest, of_r.rows)),
        bench.wire(s_comes & r_known & among(r, of_s.oldest, of_s.rows)),
    ]
    met = since(bench, Cat(meets).any())
    bench.claim("two tuples are not compared twice", ~met | ~Cat(meets).any())
    bench.claim("two tuples that have passed each other were compared", ~(r_came & s_came) | met)
    bench.cover("a tuple of S meets one of R that its core has sent on",
                meets[1] & ~among(r, right_r.following, right_r.held))  # fmt: skip
    bench.cover("a tuple of R meets one of S", meets[0])


def expedited_link():
    """Two cores in the middle of a low-latency handshake join."""
    words = [LaneKind.TUPLE, LaneKind.FENCE, LaneKind.EXPIRE]
    link = Link(ExpeditedCore, "low-latency-handshake", kinds=([*words, LaneKind.ACK], words))
    bench, left, right = link.bench, link.left, link.right
    sent = bench.wire(link.leaves[S] & (right.s_o.payload.kind == LaneKind.TUPLE))
    link.acknowledged(right.r_i, link.enters[R], sent)
    for core, name in ((left, "left"), (right, "right")):
        bench.claim(
            f"the {name} core takes one word at a time",
            ~(link.takes(core, R) & link.takes(core, S)),
        )
        put = bench.inside(core, "outputs")[R]
        answers = put.valid & (put.payload.kind == LaneKind.ACK)
        bench.claim(f"the {name} core acknowledges each tuple of S, and nothing else",
                    answers == link.takes_one(core, S, "tuple"))  # fmt: skip
    r_goes_on(link)
    crosses(link)
    return bench


def r_goes_on(link):
    """Claim that R waits for nothing but its own lane, and S for both lanes."""
    bench, left, right = link.bench, link.left, link.right
    ready = bench.inside(left, "outputs")[R].ready
    answers_within(bench, "R waits for its own lane only", link.waits(left, R) & ready, 1)
    room = bench.inside(right, "in_flight").room
    ready = Cat(bench.inside(right, "outputs")[lane].ready for lane in (R, S)).all()
    answers_within(bench, "S waits for both lanes only", link.waits(right, S) & ready & room, 1)


def crosses(link):
    """Claim that a tuple of R meets in the left core those of S that it crosses on the way there.

    One of R is chosen when the right core takes it, and one of S when the left core does. They
    cross if each has been taken before the other one comes.
    """
    bench, left, right = link.bench, link.left, link.right
    (left_r, left_s), (right_r, right_s) = (bench.inside(core, "windows") for core in (left, right))
    s_known, s = chosen(bench, link.takes_one(left, S, "tuple"), left_s.arrived, C(1))
    s_came = since(bench, s_known & link.takes_one(right, S, "tuple") & (right_s.arrived == s))
    r_known, r = chosen(bench, link.takes_one(right, R, "tuple"), right_r.arrived, C(1))
    crossing = bench.register(1, "crossing")
    bench.next(crossing.eq(Mux(r_known, crossing, ~s_came)))
    expired = since(bench, link.takes_one(left, R, "expire"))
    r_comes = r_known & link.takes_one(left, R, "tuple") & (left_r.arrived == r)
    comes = bench.past(r_comes & s_known & ~expired)  # the pass is told a cycle later
    pass_ = left.segments[S].pass_
    meets = bench.wire(among(s, pass_.met_first, pass_.met))
    bench.claim("a tuple of R meets those of S that it crosses", ~comes | ~crossing | meets)
    bench.claim("a tuple of R meets none of S that came before it", ~comes | crossing | ~meets)
    bench.cover("two tuples cross", comes & crossing)
    bench.cover("a tuple of S has come before", comes & ~crossing)


PROOFS = [
    Proof(
        name="handshake-link",
        says="no word is lost, repeated or reordered; S waits for nothing but its own lane, R for"
        " both; two tuples that pass each other are compared once",
        component="2 HandshakeCores without segments",
        build=handshake_link,
        depth=16,
        mutate=(HandshakeCore.elaborate_turns, HandshakeCore.elaborate_output, FlowWindow),
    ),
    Proof(
        name="low-latency-link",
        says="no word is lost, repeated or reordered; R waits for nothing but its own lane, S for"
        " both; a tuple of R meets exactly those of S that it crosses",
        component="2 ExpeditedCores without segments",
        build=expedited_link,
        depth=12,
        mutate=(ExpeditedCore.elaborate_taking, ExpeditedCore.elaborate_output),
    ),
]
