# SPDX-License-Identifier: Apache-2.0
"""Two neighbouring cores of a chain side by side, for proofs about the link between them.

The cores are those of the kit but for their segments. These may have room or none at any time, so
every stall of a pass and of its results is among the behaviours.
"""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import connect

from bench.handshake.layouts import LaneKind

from .small import chain_parameters
from .stream_rules import answers_within, keeps_order, offer, take

__all__ = ["Link", "R", "S", "among", "chosen", "since"]

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

    def __init__(self, bench, kind, name, *, kinds):
        self.bench = bench
        self.left, self.right = (kind(chain_parameters(name, cores=3)) for _ in range(2))
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

    def takes_with_room(self, core, name):
        """Claim that a core takes only words that its segments have room for, and says so."""
        bench, takes = self.bench, self.bench.inside(core, "takes")
        for lane in (R, S):
            room = core.segments[1 - lane].room
            bench.claim(f"the {name} core has room for what it takes of {'RS'[lane]}",
                        ~takes[lane] | room)  # fmt: skip
        bench.claim(f"the {name} core tells what it took", core.taken == bench.past(Cat(*takes)))

    def puts(self, core, name, expected):
        """Claim what a core puts into both lanes, and when.

        Parameters
        ----------
        expected : list of two (Value, list of (Value, Value))
            For each lane: whether a word is put, and what has to hold of it on a condition.
        """
        for lane, (put, said) in enumerate(expected):
            output, of = self.bench.inside(core, "outputs")[lane], f"lane of {'RS'[lane]}"
            self.bench.claim(f"the {name} core puts each word into the {of}", output.valid == put)
            right = Cat(~condition | holds for condition, holds in said).all()
            self.bench.claim(f"… and the {name} core puts it as it is into the {of}", right)

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
