# SPDX-License-Identifier: Apache-2.0
"""Where the block RAMs of a scan stand: those of a region side by side, the regions in a grid."""

import json
import re

from hdl.carry_chain import OPEN_TABLES

__all__ = ["floorplan", "lay_out"]

RAM, CARRY = "DP16KD", "CCU2C"
#: A block RAM of a key ring, by its place in the hierarchy; with digests, there are two rings.
NAME = re.compile(
    r"\.core_(\d+)\.(left|right)\.engine\.(verifier\.)?ring\.column_(\d+)\.block_(\d+)\."
)


def floorplan(names, device, *, cores):
    """Return the site of every block RAM of an accelerator; of none if they do not fit like that.

    A core takes a strip of the device's columns of block RAMs and two rows of them, one for each
    of its regions; half of the cores stand in the upper rows. Without a floorplan, the placer moves
    block RAMs into rows last, wherever there is room, and in a full device their wires
    become twice as long. Where digests and the rests of keys are in block RAMs of their own, these
    take turns: comparators gather around the former.

    Parameters
    ----------
    names : iterable of str
        Block RAMs by their hierarchical names; others than those of key rings make it empty.
    device : Device
    cores : int
        Of the accelerator.

    Returns
    -------
    dict
        Name to what nextpnr calls the site.
    """
    rings = {}
    for name in names:
        match = NAME.search(name)
        if match is None:
            return {}
        core, side, verifier, column, block = match.groups()
        place = int(column), verifier is not None, int(block), name
        rings.setdefault((int(core), side == "right"), []).append(place)
    strips = -(-cores // (len(device.ram_rows) // 2 or 1))
    width = len(device.ram_columns) // strips
    if any(len(ring) > width for ring in rings.values()):
        return {}
    sites = {}
    for (core, right), ring in rings.items():
        strip, half = core % strips, core // strips
        row = device.ram_rows[2 * half + right]
        first = strip * width + (width - len(ring)) // 2
        for n, (*_, name) in enumerate(sorted(ring)):
            column, kind = device.ram_columns[first + n]
            sites[name] = f"X{column}/Y{row}/EBR{kind}"
    return sites


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
    """Fix the block RAMs of a flat netlist at ``path`` to their sites; return how many.

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
    rams = [name for name, cell in cells.items() if cell["type"] == RAM]
    sites = floorplan(rams, device, cores=cores)
    for name, site in sites.items():
        cells[name]["attributes"]["BEL"] = site
    path.write_text(json.dumps(netlist), encoding="utf-8")
    return len(sites)
