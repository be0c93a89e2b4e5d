# SPDX-License-Identifier: Apache-2.0
"""Floorplan of an index: the block RAMs of a region stand around the region's middle."""

from itertools import product
import re
from statistics import mean

from .devices import ram_site
from .region_rams import by_region, mixed

__all__ = ["index_floorplan"]

#: Memories of a region, from its middle to its rim: those that a walk reads in every cycle; the
#: probe table and the match queues; the heads, where walks begin; the tracker, which tells when
#: keys leave.
RINGS = (("keys", "links"), ("table_", "results"), ("heads",), ("tracker",))
#: Hierarchical name of a block RAM of an index.
NAME = re.compile(rf"\.core_(\d+)\.(left|right)\.(?:engine\.)?({'|'.join(sum(RINGS, ()))})\.")


def from_the_middle(memories):
    """Return the block RAMs of a region, ordered from the middle to the rim."""
    rings = [[memories[name] for name in ring if name in memories] for ring in RINGS]
    return [name for ring in rings for name in mixed(ring)]


def index_floorplan(names, device):
    """Return the site of every block RAM of an index, or no sites if they do not fit.

    Each region gets as many of the device's columns of block RAMs as it needs, and all these
    columns stand side by side in the middle of the device. So the memories of a region stand around
    the loop from the entry that is read to the next one. The placer would spread a region over the
    device, and move its block RAMs to any free site at the end.

    Parameters
    ----------
    names : iterable of str
        Hierarchical names of the block RAMs. If any of them is not that of an index, there are no
        sites.
    device : Device

    Returns
    -------
    dict
        Name to nextpnr's name of the site.
    """
    regions = {
        region: from_the_middle(memories) for region, memories in by_region(names, NAME).items()
    }
    rows = device.ram_rows
    if not regions or not rows:
        return {}
    widths = {region: -(-len(blocks) // len(rows)) for region, blocks in regions.items()}
    first = (len(device.ram_columns) - sum(widths.values())) // 2
    if first < 0:
        return {}
    sites = {}
    for region, width in sorted(widths.items()):
        columns = device.ram_columns[first : first + width]
        first += width
        sites |= zip(regions[region], nearest(columns, rows), strict=False)
    return sites


def nearest(columns, rows):
    """Return the sites of a region, ordered from its middle outwards."""
    middle = mean(column for column, _ in columns), mean(rows)
    places = sorted(
        product(columns, rows),
        key=lambda place: abs(place[0][0] - middle[0]) + abs(place[1] - middle[1]),
    )
    return [ram_site(*place) for place in places]
