# SPDX-License-Identifier: Apache-2.0
"""Shape of a tree over a row of leaves, whose number need not be a power of the arity."""

__all__ = ["leaf_beside", "least_arity", "tree_levels"]


def tree_levels(leaves, arity):
    """Return the number of nodes on each level of a tree, from the leaves' parents to the root.

    Every level groups up to ``arity`` consecutive nodes of the level below. Even a single leaf has
    a root.

    Parameters
    ----------
    leaves, arity : int
        Number of leaves; largest number of children of a node.
    """
    levels = []
    while True:
        leaves = -(-leaves // arity)
        levels.append(leaves)
        if leaves == 1:
            return levels


def least_arity(leaves, levels):
    """Return the smallest arity, two at least, of a tree with at most so many levels.

    So the arity grows with the number of leaves, and the depth does not.

    Parameters
    ----------
    leaves, levels : int
        Number of leaves; largest number of levels, at least one.
    """
    return next(arity for arity in range(2, max(3, leaves + 1)) if arity**levels >= leaves)


def leaf_beside(level, number, *, arity, leaves):
    """Return the leaf that a node of a tree is placed beside, and whose reset it takes.

    This is the last leaf below the node's first child, which is near the node's middle. If all
    nodes have as many children as they can, no two nodes share a leaf.

    Parameters
    ----------
    level : int
        Level of the node, zero for the parents of leaves.
    number : int
        Number of the node on its level.
    arity, leaves : int
        Arity of the tree and number of its leaves.
    """
    child = arity**level  # leaves below a child
    return min(number * child * arity + child, leaves) - 1
