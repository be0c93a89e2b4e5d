# SPDX-License-Identifier: Apache-2.0
"""Proof about the link between two cores of a low-latency handshake join, in both directions."""

from amaranth import *

from bench.handshake.chain import ExpeditedCore
from bench.handshake.layouts import LaneKind

from .link_bench import Link, R, S, among, chosen, since
from .proof import proof
from .stream_rules import answers_within

__all__ = []


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
