# SPDX-License-Identifier: Apache-2.0
"""Block RAMs of an accelerator, grouped by region and memory, and put in order."""

import re

__all__ = ["by_region", "mixed"]


def by_region(names, pattern):
    """Return the block RAMs of every region, grouped by memory.

    Parameters
    ----------
    names : iterable of str
        Hierarchical names of the block RAMs.
    pattern : re.Pattern
        Pattern that finds core, side and memory in a name. The side is "left" or "right", or in a
        chain "s" or "r", which are the sides that a left and a right region store.

    Returns
    -------
    dict
        Region, as (core, whether it is the right one), to memory to names. Empty if the pattern
        does not match all of the block RAMs.
    """
    regions = {}
    for name in names:
        match = pattern.search(name)
        if match is None:
            return {}
        core, side, memory = match.groups()
        memories = regions.setdefault((int(core), side in ("right", "r")), {})
        memories.setdefault(memory, []).append(name)
    return regions


def mixed(memories):
    """Return the block RAMs of several memories in one order, with each memory evenly spread.

    So block RAMs that belong together are side by side, such as the digests and the keys of the
    same lanes.

    Parameters
    ----------
    memories : iterable of list
        Block RAM names of each memory.
    """
    places = [
        ((n + 0.5) / len(memory), name)
        for memory in memories
        for n, name in enumerate(sorted(memory, key=numbered))
    ]
    return [name for _, name in sorted(places)]


def numbered(name):
    """Return a sort key that orders names by the numbers in them."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
