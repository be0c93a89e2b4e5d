# SPDX-License-Identifier: Apache-2.0
"""Proofs about epochs: all cores change at the same tuple, and each tuple has one owner."""

from amaranth import *

from hdl.ingress.ingress import Ingress
from hdl.ingress.storage_turns import LISTS, ListWalk
from hdl.trees.distribution import DistributionNode, DistributionTree
from hdl.words.inputs import Control, InputKind

from .proof import proof
from .small import ingress_parameters
from .stream_rules import offer, take
from .turns_model import Lists

__all__ = []

#: Numbers of tuples of R that are followed, one in each proof run.
TUPLES = 3
CORES = 2


@proof(
    "epochs",
    says="no two cores disagree on the epoch of a tuple, and exactly one of them stores it",
    component="Ingress and DistributionTree, 2 cores, any of the first 3 tuples",
    depth=11,
    mutate=(ListWalk.following, DistributionNode.elaborate),
    spared={
        "place + 1 -> place - 1": "of two cores, the next one is the one before: side-turns",
        "choices swapped": "it shows in the fourth tuple: side-turns",
        "place == last -> place != last": "likewise",
        "without words.ready": "no word leaves any more: distribution-node",
        "without register.i.valid": "likewise",
        "-> exchanged": "likewise",
        "all() ->": "it takes more words than the bound allows until a child is full:"
        " distribution-node",
    },
)
def epochs(bench):
    """An ingress and a distribution tree over two cores, which take words at any time.

    Words are tuples of R, CORE and SEGMENT in any order. As many segments begin as lists are kept
    for, so that none has to wait. One tuple is followed.
    """
    parameters = ingress_parameters(cores=CORES)
    ingress = bench.add(Ingress(parameters), "ingress")
    shape = ingress.o.payload.shape()
    tree = bench.add(DistributionTree(shape, leaves=CORES, fan_out=2), "tree")
    put = offer(bench, ingress.i)
    bench.set(ingress.room, 1)
    bench.set(Value.cast(tree.i.payload), Value.cast(ingress.o.payload))
    bench.set(tree.i.valid, ingress.o.valid)
    bench.set(ingress.o.ready, tree.i.ready)
    word = ingress.i.payload
    control = word.body.control
    is_tuple = bench.wire(word.kind == InputKind.R)
    is_core, is_segment = (
        bench.wire((word.kind == InputKind.CONTROL) & (control.op == op))
        for op in (Control.CORE, Control.SEGMENT)
    )
    bench.assume(is_tuple | is_core | is_segment)

    value = bench.wire(control.value[0])
    write, begins = (Signal(name=bench.name(name)) for name in ("write", "begins"))
    lists = Lists(bench, CORES, write=write, value=value, begins=begins, forget=C(0))
    known = (control.value >= 0) & (control.value < CORES) & ~lists.listed.bit_select(value, 1)
    bench.set(write, put & is_core & known)
    bench.set(begins, put & is_segment & (lists.length != 0))
    epoch = bench.register(range(LISTS), "epoch")
    bench.assume(~begins | (epoch < LISTS - 2))
    turn, sent = bench.register(range(CORES), "turn"), bench.register(range(TUPLES + 1), "sent")
    last = turn == lists.live - 1
    stores = bench.wire(put & is_tuple)
    bench.next(
        epoch.eq(epoch + begins),
        turn.eq(Mux(begins, 0, Mux(stores, Mux(last, 0, turn + 1), turn))),
        sent.eq(Mux(sent == TUPLES, sent, sent + stores)),
    )
    number = bench.constant(range(TUPLES), "number")
    bench.assume(number < TUPLES)
    followed = bench.wire(stores & (sent == number))
    there = bench.register(1, "there")
    owner, during = bench.register(range(CORES), "owner"), bench.register(range(LISTS), "during")
    bench.next(
        there.eq(there | followed),
        owner.eq(Mux(followed, lists.core(turn), owner)),
        during.eq(Mux(followed, epoch, during)),
    )
    leaves(bench, tree, number, there, owner, during)


def leaves(bench, tree, number, there, owner, during):
    """Claim what each core is told of the tuple that is followed."""
    told = []
    for core, o in enumerate(tree.o):
        got = take(bench, o, f"core {core}")
        is_tuple = o.payload.kind == InputKind.R
        seen = bench.register(range(TUPLES + 1), "seen")
        changes = bench.register(range(LISTS), "changes")
        bench.next(
            seen.eq(Mux(seen == TUPLES, seen, seen + (got & is_tuple))),
            changes.eq(changes + (got & ~is_tuple)),
        )
        here = bench.wire(got & is_tuple & (seen == number))
        bench.claim(f"core {core} has the tuple only once it has been sent", ~here | there)
        bench.claim(f"core {core} has the tuple in its epoch", ~here | (changes == during))
        bench.claim(f"core {core} knows its owner", ~here | (o.payload.storing[0] == owner))
        mine, had = bench.register(1, "mine"), bench.register(1, "had")
        bench.next(mine.eq(Mux(here, o.payload.storing[0] == core, mine)), had.eq(had | here))
        told.append((had, mine))
        bench.cover(
            f"core {core} stores a tuple of the second epoch",
            here & (during == 1) & (o.payload.storing[0] == core),
        )
    (first, one), (second, other) = told
    bench.claim("exactly one core stores the tuple", ~(first & second) | (one ^ other))
    bench.cover(
        "a core has the tuple long before the other one", first & ~second & bench.past(first)
    )
