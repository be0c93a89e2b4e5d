# SPDX-License-Identifier: Apache-2.0
"""Where cells stand that few sites are for: block RAMs of a scan in a grid of its regions,
multipliers side by side."""

import json
import re
from statistics import mean

from hdl.comparison.carry_chain import OPEN_TABLES

__all__ = ["floorplan", "lay_out", "multiplier_sites"]

RAM, MULTIPLIER, CARRY = "DP16KD", "MULT18X18D", "CCU2C"
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


def floorplan(names, device, *, cores):
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


def multiplier_sites(names, device):
    """Return sites for multipliers in the middle of the device, side by side, in order of names.

    Few cells reach their registers as late as a multiplier. Where the placer may move it into a row
    last, its product has to cross twenty rows now and then; what stands still from the beginning
    has its registers beside it.

    Parameters
    ----------
    names : iterable of str
        Multipliers by their hierarchical names.
    device : Device

    Returns
    -------
    dict
        Name to what nextpnr calls the site; empty if a row has not so many.
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
    """Leave carry inputs open that nothing depends on; return how many.

    Yosys ties them to zero, and nextpnr would lead this zero in through a cell of its own.
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


def lay_out(path, *, top, device, cores):
    """Fix cells of a flat netlist at ``path`` to their sites; return how many of each type.

    Parameters
    ----------
    path : pathlib.Path
        As Yosys writes it, in JSON.
    top : str
        Its module.
    device, cores
        As for :func:`floorplan`.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    cells = netlist["modules"][top]["cells"]
    open_carries(cells)
    of_type = {
        kind: [name for name, cell in cells.items() if cell["type"] == kind]
        for kind in (RAM, MULTIPLIER)
    }
    sites = {
        RAM: floorplan(of_type[RAM], device, cores=cores),
        MULTIPLIER: multiplier_sites(of_type[MULTIPLIER], device),
    }
    for name, site in (sites[RAM] | sites[MULTIPLIER]).items():
        cells[name]["attributes"]["BEL"] = site
    path.write_text(json.dumps(netlist), encoding="utf-8")
    return {kind: len(fixed) for kind, fixed in sites.items()}
