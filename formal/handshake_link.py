# SPDX-License-Identifier: Apache-2.0
"""Proof about the link between two cores of a handshake join, in both directions."""

from amaranth import *

from bench.handshake.chain import HandshakeCore
from bench.handshake.layouts import LaneKind

from .link_bench import Link, R, S, among, chosen, since
from .proof import proof
from .stream_rules import answers_within

__all__ = []


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
