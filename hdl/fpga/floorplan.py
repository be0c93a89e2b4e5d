# SPDX-License-Identifier: Apache-2.0
"""Floorplan of the cells that have few sites: block RAMs and multipliers."""

import json
from statistics import mean

from hdl.comparison.carry_chain import OPEN_TABLES

from .index_floorplan import index_floorplan
from .packing import CARRY
from .scan_floorplan import scan_floorplan

__all__ = ["lay_out", "multiplier_sites"]

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


def lay_out(path, *, top, device, cores):
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
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    cells = netlist["modules"][top]["cells"]
    open_carries(cells)
    of_type = {
        kind: [name for name, cell in cells.items() if cell["type"] == kind]
        for kind in (RAM, MULTIPLIER)
    }
    sites = {
        RAM: scan_floorplan(of_type[RAM], device, cores=cores)
        or index_floorplan(of_type[RAM], device),
        MULTIPLIER: multiplier_sites(of_type[MULTIPLIER], device),
    }
    for name, site in (sites[RAM] | sites[MULTIPLIER]).items():
        cells[name]["attributes"]["BEL"] = site
    path.write_text(json.dumps(netlist), encoding="utf-8")
    return {kind: len(fixed) for kind, fixed in sites.items()}
