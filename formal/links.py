# SPDX-License-Identifier: Apache-2.0
"""Proofs about the link between two cores of a chain, in both directions."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import connect

from bench.handshake.chain import ExpeditedCore, HandshakeCore
from bench.handshake.layouts import LaneKind

from .proof import proof
from .small import chain_parameters
from .stream_rules import answers_within, keeps_order, offer, take

__all__ = ["Link", "R", "S", "among", "chosen", "since"]

# Two neighbouring cores of a chain side by side, for proofs about the link between them.
#
# The cores are those of the kit but for their segments. These may have room or none at any time, so
# every stall of a pass and of its results is among the behaviours.

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


# Proof about the link between two cores of a handshake join, in both directions.


@proof(
    "handshake-link",
    says="no word is lost, repeated or reordered; S waits for nothing but its own lane, R for"
    " both; two tuples that pass each other are compared once",
    component="2 HandshakeCores without segments",
    depth=16,
    mutate=(HandshakeCore.elaborate_turns, HandshakeCore.elaborate_output),
    spared={
        "window.held.any()": "words that expire tuples come at the ends of a chain only:"
        " tests of the core",
    },
)
def handshake_link(bench):
    """Two cores in the middle of a handshake join."""
    tuples = [LaneKind.TUPLE, LaneKind.FENCE]
    kinds = ([*tuples, LaneKind.BOUND], [*tuples, LaneKind.ACK])
    link = Link(bench, HandshakeCore, "handshake", kinds=kinds)
    left, right = link.left, link.right
    bench.set(left.held_i[R], bench.any(len(left.held_i[R]), "held"))
    bench.set(right.held_i[S], bench.any(len(right.held_i[S]), "held"))
    bench.set(left.held_i[S], right.held_o[S])
    bench.set(right.held_i[R], left.held_o[R])
    sent = bench.wire(link.leaves[R] & (left.r_o.payload.kind == LaneKind.TUPLE))
    link.acknowledged(left.s_i, link.enters[S], sent)
    for core, name in ((left, "left"), (right, "right")):
        events = Cat(*bench.inside(core, "takes"), *bench.inside(core, "sends"))
        bench.claim(f"the {name} core does one thing at a time", (events & (events - 1)) == 0)
        link.takes_with_room(core, name)
        link.puts(core, name, flow_puts(link, core))
        sends_more(link, core, name)
        s_goes_on(link, core, name)
    windows = [bench.inside(core, "windows") for core in (left, right)]
    met_once(link, windows)


def flow_puts(link, core):
    """Return what a core of the handshake join puts into its lanes, as :meth:`Link.puts` has it."""
    sends, outlets = (link.bench.inside(core, name) for name in ("sends", "outlets"))
    fences = [link.takes_one(core, lane, "fence") for lane in (R, S)]
    bound, acknowledges = link.takes_one(core, R, "bound"), link.takes_one(core, R, "tuple")
    puts = []
    for lane, others in ((R, bound), (S, acknowledges)):
        word = link.bench.inside(core, "outputs")[lane].payload
        taken = link.bench.inside(core, "lanes")[lane].payload.word
        passed = fences[lane] | (bound if lane == R else 0)
        said = [
            (sends[lane], word.kind == LaneKind.TUPLE),
            (sends[lane], Value.cast(word.body.tuple.key) == Value.cast(outlets[lane].key)),
            (passed, Value.cast(word) == Value.cast(taken)),
        ]
        if lane == S:
            said.append((acknowledges, word.kind == LaneKind.ACK))
        puts.append((sends[lane] | fences[lane] | others, said))
    return puts


def sends_more(link, core, name):
    """Claim that a core sends a tuple on exactly if it held more than its neighbour before."""
    bench = link.bench
    takes, sends, outlets, outputs, windows = (
        bench.inside(core, part) for part in ("takes", "sends", "outlets", "outputs", "windows")
    )
    for side in (R, S):
        of = f"the {name} core, tuples of {'RS'[side]}"
        held = windows[side].held
        bench.claim(f"{of}: it tells how many it holds", core.held_o[side] == bench.past(held))
        more = bench.past(held > core.held_i[side]) & outlets[side].valid
        bench.claim(f"{of}: none is sent to a neighbour that holds as many", ~sends[side] | more)
        stays = more & outputs[side].ready & ~Cat(*takes, *sends).any()
        bench.claim(f"{of}: one is sent if nothing else happens", ~stays)


def s_goes_on(link, core, name):
    """Claim that S waits for nothing but its own lane, and R for nothing but both lanes."""
    bench = link.bench
    ready = [bench.wire(bench.inside(core, "outputs")[lane].ready) for lane in (R, S)]
    # A core sends a tuple in every fourth cycle at most, and takes words in between.
    answers_within(
        bench, f"S waits for its own lane only, in the {name} core",
        link.waits(core, S) & ready[S], 1,
    )  # fmt: skip
    idle = ~Cat(*bench.inside(core, "takes"), *bench.inside(core, "sends")).any()
    answers_within(
        bench, f"R waits for S and for both lanes only, in the {name} core",
        link.waits(core, R) & ready[R] & ready[S] & idle, 0,
    )  # fmt: skip


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


# Proof about the link between two cores of a low-latency handshake join, in both directions.


@proof(
    "low-latency-link",
    says="no word is lost, repeated or reordered; R waits for nothing but its own lane, S for"
    " both; a tuple of R meets exactly those of S that it crosses",
    component="2 ExpeditedCores without segments",
    depth=12,
    mutate=(ExpeditedCore.elaborate_taking, ExpeditedCore.elaborate_output),
    spared={
        "If(takes[0] | takes[1]) -> If(1)": "after an idle cycle either lane may begin",
        "without window.restart": "numbers do not restart in this bench: tests of the core",
    },
)
def expedited_link(bench):
    """Two cores in the middle of a low-latency handshake join."""
    words = [LaneKind.TUPLE, LaneKind.FENCE, LaneKind.EXPIRE]
    link = Link(bench, ExpeditedCore, "expedited", kinds=([*words, LaneKind.ACK], words))
    left, right = link.left, link.right
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
        link.takes_with_room(core, name)
        link.puts(core, name, expedited_puts(link, core))
        r_goes_on(link, core, name)
    crosses(link)


def expedited_puts(link, core):
    """Return what a core of the low-latency join puts into its lanes, see :meth:`Link.puts`."""
    bench = link.bench
    takes, windows, lanes, outputs = (
        bench.inside(core, part) for part in ("takes", "windows", "lanes", "outputs")
    )
    acknowledges = link.takes_one(core, S, "tuple")
    puts = []
    for lane in (R, S):
        word, taken = outputs[lane].payload, lanes[lane].payload
        same = Cat(
            word.kind == taken.word.kind, word.restart == taken.word.restart,
            word.before == taken.word.before,
            Value.cast(word.body) == Value.cast(taken.word.body),
            ~taken.tuple | (word.homeless == (taken.word.homeless & ~windows[lane].mine)),
        )  # fmt: skip
        passed = takes[lane] & ~taken.ack
        put = passed | acknowledges if lane == R else takes[S]
        puts.append((put, [(passed, same.all())]))
    return puts


def r_goes_on(link, core, name):
    """Claim that R waits for nothing but its own lane, and S for both lanes."""
    bench = link.bench
    ready = [bench.wire(bench.inside(core, "outputs")[lane].ready) for lane in (R, S)]
    answers_within(
        bench, f"R waits for its own lane only, in the {name} core",
        link.waits(core, R) & ready[R], 1,
    )  # fmt: skip
    room = bench.inside(core, "in_flight").room
    answers_within(
        bench, f"S waits for both lanes only, in the {name} core",
        link.waits(core, S) & ready[R] & ready[S] & room, 1,
    )  # fmt: skip


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
