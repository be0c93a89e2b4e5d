# SPDX-License-Identifier: Apache-2.0
"""Proofs about the distribution tree."""

from amaranth import *
from amaranth.lib import data

from hdl.trees.distribution import DistributionNode, DistributionTree

from .proof import proof
from .states import early_states, entries_states, held_in, register_states
from .stream_rules import answers_within, keeps_order, offer, take

__all__ = []


WORD = data.StructLayout({"early": 1, "rest": 1})


@proof(
    "distribution-node",
    says="every child gets every word once, in order, however slow the others are",
    component="DistributionNode, 2 children",
    depth=12,
    induction=3,
    mutate=(DistributionNode,),
)
def distribution_node(bench):
    """A node with two children that are ready at any time."""
    dut = bench.add(DistributionNode(WORD, fan_out=2, early=["early"]))
    put = offer(bench, dut.i)
    chains = [[child, bench.inside(dut, "arriving")] for child in bench.inside(dut, "registers")]
    deliver(bench, dut, put, chains)


@proof(
    "distribution-tree",
    says="every leaf gets every word once, in order",
    component="DistributionTree, 3 leaves, arity 2",
    depth=14,
    induction=3,
    mutate=(DistributionTree, DistributionNode),
    spared={
        "node.reset": "reset-distribution-tree",
        "without words.ready": "no word leaves any more: distribution-node",
    },
)
def distribution_tree(bench):
    """A tree of two levels over three leaves."""
    dut = bench.add(DistributionTree(WORD, leaves=3, fan_out=2, early=["early"]))
    put = offer(bench, dut.i)
    nodes = bench.inside(dut, "m").submodules
    root = nodes["node_1_0"]
    below = [(child, leaf // 2) for leaf, child in enumerate(children(bench, nodes, 3))]
    chains = [
        [
            child,
            bench.inside(nodes[f"node_0_{n}"], "arriving"),
            bench.inside(root, "registers")[n],
            bench.inside(root, "arriving"),
        ]
        for child, n in below
    ]
    deliver(bench, dut, put, chains)


def children(bench, nodes, leaves):
    """Return the registers in front of the leaves of a tree of arity two."""
    return [bench.inside(nodes[f"node_0_{n // 2}"], "registers")[n % 2] for n in range(leaves)]


def deliver(bench, dut, put, chains):
    """Claim that every output gets every word once, in order, through a chain of registers."""
    known = {}
    for n, (o, chain) in enumerate(zip(dut.o, chains, strict=True)):
        got = take(bench, o, f"child {n}")
        queue = keeps_order(
            bench, f"way to child {n}", put, dut.i.payload, got, o.payload, most=2 * len(chain)
        )
        for register in chain:
            if id(register) not in known:
                known[id(register)] = register_states(bench, register)
        early_states(bench, chain[0])
        held = [entry for register in chain for entry in held_in(bench, register)]
        entries_states(bench, queue, held)
        if len(chain) == 2:
            all_take = Cat(own.ready for own in dut.o).all()
            stuck = all_take & ~o.valid & (queue.level != 0)
            answers_within(bench, f"child {n} gets what is on its way while all take", stuck, 2)
        bench.cover(
            f"child {n} is ahead of another one", got & put & ~Cat(o.ready for o in dut.o).all()
        )
