# SPDX-License-Identifier: Apache-2.0
"""Sites of block RAMs and multipliers, and whether a device has room."""

from itertools import product
import json
import re
from statistics import mean

from hdl.ecp5 import OPEN_TABLES

from .depth import CARRY, cost_of
from .devices import ram_site

__all__ = [
    "by_region",
    "index_floorplan",
    "lay_out",
    "mixed",
    "multiplier_sites",
    "require_room",
    "scan_floorplan",
]


def by_region(names, pattern):
    """Return the block RAMs of every region, grouped by memory.

    Parameters
    ----------
    names : iterable of str
        Hierarchical names of the block RAMs.
    pattern : re.Pattern
        Pattern that finds core, side and memory in a name. The side is "left" or "right", or "s"
        or "r", which are the sides that a left and a right region store.

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


#: Memories of a region, from its middle to its rim: those that a walk reads in every cycle; the
#: probe table and the match queues; the heads, where walks begin; the tracker, which tells when
#: keys leave.
RINGS = (("keys", "links"), ("table_", "results"), ("heads",), ("tracker",))
#: Hierarchical name of a block RAM of an index.
INDEX_NAME = re.compile(rf"\.core_(\d+)\.(left|right)\.(?:engine\.)?({'|'.join(sum(RINGS, ()))})\.")


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
        region: from_the_middle(memories)
        for region, memories in by_region(names, INDEX_NAME).items()
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


#: Hierarchical name of a block RAM of a scan: in a key ring or, with digests, in one of two key
#: rings or in the pass table; or, with timestamps, in a queue of deadlines. With parity, there is a
#: component around each column.
SCAN_NAME = re.compile(
    r"\.core_(\d+)\.(left|right)\."
    r"(engine\.ring|engine\.verifier\.ring|engine\.passes\.probes|tracker\.by_time\.deadlines)"
    r"(?:_\d+\.numbers|\.column_\d+)?(?:\.rows)?\.block_\d+\."
)
#: The memory of deadlines, as :data:`NAME` finds it.
DEADLINES = "tracker.by_time.deadlines"


def scan_floorplan(names, device, *, cores, rings=None):
    """Return the site of every block RAM of a scan, or no sites if they do not fit.

    With few cores, each core takes a strip of the device's columns of block RAMs and two of its
    rows, one for each region; half of the cores stand in the upper rows. With many cores, the
    regions are narrower than the distance between rows. Both regions of a core then stand side by
    side, and each core below the previous one. With ``rings`` every other strip or row is turned
    round, so that each core stands beside both of its neighbours. Without a floorplan, the placer
    moves block RAMs to any free site at the end, and in a full device their wires become twice as
    long.

    Deadlines stand at the end of a region's row that is closer to the middle of the device, where
    timestamps come from. Registers bridge the distance to what compares them, which the keys of a
    row, all needed in the same cycle, do not have.

    Parameters
    ----------
    names : iterable of str
        Hierarchical names of the block RAMs. If any of them is neither that of a scan nor one of
        the ``rings``, there are no sites.
    device : Device
    cores : int
        Number of cores of the accelerator.
    rings : re.Pattern, optional
        See :attr:`hdl.arrangement.Arrangement.rings`.

    Returns
    -------
    dict
        Name to nextpnr's name of the site.
    """
    names = list(names)
    chained = by_region(names, rings) if rings else {}
    regions = chained or by_region(names, SCAN_NAME)
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


RAM, MULTIPLIER = "DP16KD", "MULT18X18D"


def multiplier_sites(names, device):
    """Return adjacent sites in the middle of the device for multipliers, in order of their names.

    Few signals reach their registers as late as the product of a multiplier. If the placer moves a
    multiplier into a row at the end, its product may have to cross twenty rows. A multiplier that
    is fixed from the beginning gets its registers placed next to it.

    Parameters
    ----------
    names : iterable of str
        Hierarchical names of the multipliers.
    device : Device

    Returns
    -------
    dict
        Name to nextpnr's name of the site; empty if a row has too few sites.
    """
    names, columns = sorted(names), device.multiplier_columns
    if not 0 < len(names) <= len(columns):
        return {}
    row = min(device.multiplier_rows, key=lambda row: abs(row - mean(device.ram_rows)))
    first = (len(columns) - len(names)) // 2
    return {
        name: f"X{column}/Y{row}/MULT18_{kind}"
        for name, (column, kind) in zip(names, columns[first:], strict=False)
    }


def open_carries(cells):
    """Leave carry inputs open that have no influence; return their number.

    Yosys ties these inputs to zero, and nextpnr would feed the zero in through a cell of its own.
    """
    chains = [
        cell["connections"]
        for cell in cells.values()
        if cell["type"] == CARRY
        and int(cell["parameters"]["INIT0"], 2) in OPEN_TABLES
        and cell["connections"]["CIN"] == ["0"]
    ]
    for pins in chains:
        pins["CIN"] = ["x"]
    return len(chains)


def lay_out(path, *, top, device, cores, rings=None):
    """Fix cells of the flat netlist at ``path`` to sites; return the number of fixed cells by type.

    Parameters
    ----------
    path : pathlib.Path
        Netlist as Yosys' JSON; overwritten.
    top : str
        Name of its module.
    device : Device
    cores : int
        Number of cores of the accelerator.
    rings : re.Pattern, optional
        See :attr:`hdl.arrangement.Arrangement.rings`.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    cells = netlist["modules"][top]["cells"]
    open_carries(cells)
    of_type = {
        kind: [name for name, cell in cells.items() if cell["type"] == kind]
        for kind in (RAM, MULTIPLIER)
    }
    sites = {
        RAM: scan_floorplan(of_type[RAM], device, cores=cores, rings=rings)
        or index_floorplan(of_type[RAM], device),
        MULTIPLIER: multiplier_sites(of_type[MULTIPLIER], device),
    }
    for name, site in (sites[RAM] | sites[MULTIPLIER]).items():
        cells[name]["attributes"]["BEL"] = site
    path.write_text(json.dumps(netlist), encoding="utf-8")
    return {kind: len(fixed) for kind, fixed in sites.items()}


def require_room(netlist, device, *, top):
    """Raise an error if a netlist takes more of a resource than the device has.

    nextpnr does not always say so. Its placer looks for sites of block RAMs that no device has
    until a deadline ends it.

    Parameters
    ----------
    netlist : pathlib.Path
        Flat netlist as Yosys' JSON.
    device : Device
    top : str
        Name of its module.

    Raises
    ------
    ValueError
        Names each resource of which there is too little.
    """
    cost = cost_of(json.loads(netlist.read_text(encoding="utf-8"))["modules"][top]["cells"])
    taken = {
        "block RAMs": (cost.block_rams, device.block_rams),
        "sites of LUTs": (cost.logic_cells, device.logic_cells),
        "registers": (cost.registers, device.logic_cells),
    }
    excess = [
        f"it takes {needed:,} {name}, and there are {there:,}"
        for name, (needed, there) in taken.items()
        if needed > there
    ]
    if excess:
        raise ValueError(
            f"The design has no room on the {device.name}: {'; '.join(excess)}. Fewer cores, lanes "
            "or probes, or a smaller sub-window take less; `python -m hdl cost` counts them"
        )
