# SPDX-License-Identifier: Apache-2.0
"""Floorplan of a scan or a chain: a region's block RAMs side by side, the regions in a grid."""

import re

from .devices import ram_site
from .region_rams import by_region, mixed

__all__ = ["scan_floorplan"]

#: Hierarchical name of a block RAM of a scan: in a key ring or, with digests, in one of two key
#: rings or in the pass table; or, with timestamps, in a queue of deadlines. With parity, there is a
#: component around each column.
NAME = re.compile(
    r"\.core_(\d+)\.(left|right)\."
    r"(engine\.ring|engine\.verifier\.ring|engine\.passes\.probes|tracker\.by_time\.deadlines)"
    r"(?:_\d+\.numbers|\.column_\d+)?(?:\.rows)?\.block_\d+\."
)
#: The memory of deadlines, as :data:`NAME` finds it.
DEADLINES = "tracker.by_time.deadlines"
#: Hierarchical name of a block RAM of a chain of cores: in the ring of a segment.
CHAIN = re.compile(r"\.chain\.core_(\d+)\.segment_([rs])\.(ring)\.block_\d+\.")


def scan_floorplan(names, device, *, cores):
    """Return the site of every block RAM of a scan or a chain, or no sites if they do not fit.

    With few cores, each core takes a strip of the device's columns of block RAMs and two of its
    rows, one for each region; half of the cores stand in the upper rows. With many cores, the
    regions are narrower than the distance between rows. Both regions of a core then stand side by
    side, and each core below the previous one. In a chain every other strip or row is turned round,
    so that each core stands beside both of its neighbours. Without a floorplan, the placer moves
    block RAMs to any free site at the end, and in a full device their wires become twice as long.

    Deadlines stand at the end of a region's row that is closer to the middle of the device, where
    timestamps come from. Registers bridge the distance to what compares them, which the keys of a
    row, all needed in the same cycle, do not have.

    Parameters
    ----------
    names : iterable of str
        Hierarchical names of the block RAMs. If any of them is neither that of a scan nor that of a
        chain, there are no sites.
    device : Device
    cores : int
        Number of cores of the accelerator.

    Returns
    -------
    dict
        Name to nextpnr's name of the site.
    """
    names = list(names)
    chained = by_region(names, CHAIN)
    regions = chained or by_region(names, NAME)
    rows = {region: keys_and_deadlines(memories) for region, memories in regions.items()}
    down = len(device.ram_rows)
    if not down:
        return {}
    many = cores > 2 * down
    strips = 2 * -(-cores // down) if many else -(-cores // (down // 2))
    width = len(device.ram_columns) // strips
    if any(len(keys) + len(deadlines) > width for keys, deadlines in rows.values()):
        return {}
    sites = {}
    for (core, right), (keys, deadlines) in rows.items():
        along, across = divmod(core, down if many else strips)
        if chained and along % 2:
            across = (down if many else strips) - 1 - across
        strip, row = (2 * along + right, across) if many else (across, 2 * along + right)
        # One strip alone has the middle of the device in its own middle; either end will do.
        blocks = [*keys, *deadlines] if 2 * strip < strips else [*deadlines, *keys]
        first = strip * width + (width - len(blocks)) // 2
        for n, name in enumerate(blocks):
            sites[name] = ram_site(device.ram_columns[first + n], device.ram_rows[row])
    return sites


def keys_and_deadlines(memories):
    """Return the block RAMs of a region in the order in which they stand, deadlines apart."""
    keys = mixed(names for memory, names in memories.items() if memory != DEADLINES)
    return keys, mixed([memories.get(DEADLINES, [])])
