# SPDX-License-Identifier: Apache-2.0
"""Whether a netlist has room on a device, asked before anything is placed."""

import json

from .cells import cost_of

__all__ = ["require_room"]


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
