# SPDX-License-Identifier: Apache-2.0
"""Block RAMs of an accelerator, by region and memory, and in the order in which they stand."""

import re

__all__ = ["by_region", "mixed"]


def by_region(names, pattern):
    """Return the block RAMs of every region, by memory.

    Parameters
    ----------
    names : iterable of str
        Block RAMs by their hierarchical names.
    pattern : re.Pattern
        Finds core, side ("left" or "right") and memory in a name.

    Returns
    -------
    dict
        Core, and whether the region is the right one, to memory to names; empty if there is a block
        RAM that the pattern does not know.
    """
    regions = {}
    for name in names:
        match = pattern.search(name)
        if match is None:
            return {}
        core, side, memory = match.groups()
        memories = regions.setdefault((int(core), side == "right"), {})
        memories.setdefault(memory, []).append(name)
    return regions


def mixed(memories):
    """Return the block RAMs of some memories in one order, each memory spread over all of it.

    So what belongs together is side by side: the digests of some lanes and the keys of these.

    Parameters
    ----------
    memories : iterable of list
        The names of each.
    """
    places = [
        ((n + 0.5) / len(memory), name)
        for memory in memories
        for n, name in enumerate(sorted(memory, key=numbered))
    ]
    return [name for _, name in sorted(places)]


def numbered(name):
    """Return a key that sorts names by the numbers in them."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
