# SPDX-License-Identifier: Apache-2.0
"""Where the block RAMs of a scan stand: those of a region side by side, the regions in a grid."""

import re

__all__ = ["scan_floorplan"]

#: A block RAM of a scan, by its place in the hierarchy: in a ring of keys or, with digests, in one
#: of two or in the table of passes.
NAME = re.compile(
    r"\.core_(\d+)\.(left|right)\.engine\.(ring|verifier\.ring|passes\.probes)"
    r"(?:\.column_(\d+))?\.block_(\d+)\."
)


def in_a_row(blocks):
    """Return the block RAMs of a region in the order in which they stand.

    Each memory is spread over the whole row, so that what belongs together is side by side: the
    digests of some lanes and the keys of these.

    Parameters
    ----------
    blocks : dict
        Memory to a list of (column, block, name).
    """
    places = [
        ((n + 0.5) / len(memory), name)
        for memory in blocks.values()
        for n, (*_, name) in enumerate(sorted(memory))
    ]
    return [name for _, name in sorted(places)]


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
    regions = {}
    for name in names:
        match = NAME.search(name)
        if match is None:
            return {}
        core, side, memory, column, block = match.groups()
        blocks = regions.setdefault((int(core), side == "right"), {}).setdefault(memory, [])
        blocks.append((int(column or 0), int(block), name))
    rows = {region: in_a_row(blocks) for region, blocks in regions.items()}
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
            column, kind = device.ram_columns[first + n]
            sites[name] = f"X{column}/Y{device.ram_rows[row]}/EBR{kind}"
    return sites
