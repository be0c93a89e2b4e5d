# SPDX-License-Identifier: Apache-2.0
"""The nodes of a tree over a row of leaves, not only powers of its arity."""

__all__ = ["leaf_beside", "tree_levels"]


def tree_levels(leaves, arity):
    """Return the number of nodes on each level of a tree, from the leaves' parents to the root.

    Every level groups up to ``arity`` consecutive nodes of the level below. One leaf still gets a
    root.

    Parameters
    ----------
    leaves, arity : int
        Of the tree.
    """
    levels = []
    while True:
        leaves = -(-leaves // arity)
        levels.append(leaves)
        if leaves == 1:
            return levels


def leaf_beside(level, number, *, arity, leaves):
    """Return the leaf beside which a node of a tree stands, and whose reset it takes.

    It is the last one of the node's first child, and so near its middle; where all nodes have as
    many children as they can, every leaf is that of one node at most.

    Parameters
    ----------
    level : int
        Of the node, zero for the parents of leaves.
    number : int
        Of the node, on its level.
    arity, leaves : int
        Of the tree.
    """
    child = arity**level  # leaves below it
    return min(number * child * arity + child, leaves) - 1
