# SPDX-License-Identifier: Apache-2.0
"""Where the block RAMs of an index stand: those of a region around its middle."""

from itertools import product
import re
from statistics import mean

__all__ = ["index_floorplan"]

#: A block RAM of an index, by its place in the hierarchy.
NAME = re.compile(r"\.core_(\d+)\.(left|right)\.(?:engine\.)?(\w+)")
#: Its memories from the middle of a region to the rim: what a walk reads in every cycle; the probe
#: that it compares, and where matches go; where walks begin; when keys leave.
NEARNESS = {"keys": 0, "links": 0, "table_": 1, "results": 1, "heads": 2, "tracker": 3}


def from_the_middle(names):
    """Return the block RAMs of a region from the middle to the rim.

    Those of memories that are equally near are mixed, each spread over all of their places.
    """
    memories = {}
    for name in names:
        memories.setdefault(NAME.search(name)[3], []).append(name)
    places = [
        (NEARNESS[memory], (n + 0.5) / len(blocks), name)
        for memory, blocks in memories.items()
        for n, name in enumerate(sorted(blocks, key=numbered))
    ]
    return [name for *_, name in sorted(places)]


def numbered(name):
    """Return a key that sorts names by the numbers in them."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def index_floorplan(names, device):
    """Return the site of every block RAM of an index; of none if they do not fit like that.

    Each region has some of the device's columns of block RAMs, no more than it needs, and all of
    them stand side by side in the middle of the device. So the loop from an entry that is read to
    the next one has its memories around it. The placer would spread a region over the device, and
    move its block RAMs last, wherever there is room.

    Parameters
    ----------
    names : iterable of str
        Block RAMs by their hierarchical names; others than those of an index make it empty.
    device : Device

    Returns
    -------
    dict
        Name to what nextpnr calls the site.
    """
    regions = {}
    for name in names:
        match = NAME.search(name)
        if match is None or match[3] not in NEARNESS:
            return {}
        regions.setdefault((int(match[1]), match[2]), []).append(name)
    rows = device.ram_rows
    widths = {region: -(-len(names) // len(rows)) for region, names in regions.items() if rows}
    first = (len(device.ram_columns) - sum(widths.values())) // 2
    if not widths or first < 0:
        return {}
    sites = {}
    for region, width in sorted(widths.items()):
        columns = device.ram_columns[first : first + width]
        first += width
        sites |= zip(from_the_middle(regions[region]), nearest(columns, rows), strict=False)
    return sites


def nearest(columns, rows):
    """Return the sites of a region, those in its middle first."""
    middle = mean(column for column, _ in columns), mean(rows)
    places = sorted(
        product(columns, rows),
        key=lambda place: abs(place[0][0] - middle[0]) + abs(place[1] - middle[1]),
    )
    return [f"X{column}/Y{row}/EBR{kind}" for (column, kind), row in places]
