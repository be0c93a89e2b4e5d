# SPDX-License-Identifier: Apache-2.0
"""Where cells stand that few sites are for: block RAMs, and multipliers."""

import json
from statistics import mean

from hdl.comparison.carry_chain import OPEN_TABLES

from .index_floorplan import index_floorplan
from .scan_floorplan import scan_floorplan

__all__ = ["lay_out", "multiplier_sites"]

RAM, MULTIPLIER, CARRY = "DP16KD", "MULT18X18D", "CCU2C"


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
    device : Device
    cores : int
        Of the accelerator.
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
