# SPDX-License-Identifier: Apache-2.0
"""Where the block RAMs of an index stand: those of a region around its middle."""

from itertools import product
import re
from statistics import mean

from .devices import ram_site
from .region_rams import by_region, mixed

__all__ = ["index_floorplan"]

#: Memories of a region from its middle to the rim: what a walk reads in every cycle; the probe that
#: it compares, and where matches go; where walks begin; when keys leave.
RINGS = (("keys", "links"), ("table_", "results"), ("heads",), ("tracker",))
#: A block RAM of an index, by its place in the hierarchy.
NAME = re.compile(rf"\.core_(\d+)\.(left|right)\.(?:engine\.)?({'|'.join(sum(RINGS, ()))})\.")


def from_the_middle(memories):
    """Return the block RAMs of a region from the middle to the rim."""
    rings = [[memories[name] for name in ring if name in memories] for ring in RINGS]
    return [name for ring in rings for name in mixed(ring)]


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
    """Return the sites of a region, those in its middle first."""
    middle = mean(column for column, _ in columns), mean(rows)
    places = sorted(
        product(columns, rows),
        key=lambda place: abs(place[0][0] - middle[0]) + abs(place[1] - middle[1]),
    )
    return [ram_site(*place) for place in places]
