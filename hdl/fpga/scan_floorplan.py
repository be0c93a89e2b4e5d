# SPDX-License-Identifier: Apache-2.0
"""Where the block RAMs of a scan stand: those of a region side by side, the regions in a grid."""

import re

from .devices import ram_site
from .region_rams import by_region, mixed

__all__ = ["scan_floorplan"]

#: A block RAM of a scan, by its place in the hierarchy: in a ring of keys or, with digests, in one
#: of two or in the table of passes.
NAME = re.compile(
    r"\.core_(\d+)\.(left|right)\.engine\.(ring|verifier\.ring|passes\.probes)"
    r"(?:\.column_\d+)?\.block_\d+\."
)


def scan_floorplan(names, device, *, cores):
    """Return the site of every block RAM of an accelerator; of none if they do not fit like that.

    Few cores take a strip of the device's columns of block RAMs each, and two rows of them, one for
    each region; half of the cores stand in the upper rows. The regions of many cores are narrower
    than rows are apart: there, both stand side by side, and a core below the one before it.
    Without a floorplan, the placer moves block RAMs into rows last, wherever there is room, and in
    a full device their wires become twice as long.

    Parameters
    ----------
    names : iterable of str
        Block RAMs by their hierarchical names; others than those of a scan make it empty.
    device : Device
    cores : int
        Of the accelerator.

    Returns
    -------
    dict
        Name to what nextpnr calls the site.
    """
    rows = {region: mixed(memories.values()) for region, memories in by_region(names, NAME).items()}
    down = len(device.ram_rows)
    if not down:
        return {}
    many = cores > 2 * down
    strips = 2 * -(-cores // down) if many else -(-cores // (down // 2))
    width = len(device.ram_columns) // strips
    if any(len(row) > width for row in rows.values()):
        return {}
    sites = {}
    for (core, right), blocks in rows.items():
        if many:
            strip, row = 2 * (core // down) + right, core % down
        else:
            strip, row = core % strips, 2 * (core // strips) + right
        first = strip * width + (width - len(blocks)) // 2
        for n, name in enumerate(blocks):
            sites[name] = ram_site(device.ram_columns[first + n], device.ram_rows[row])
    return sites
