# SPDX-License-Identifier: Apache-2.0
"""How large a netlist is."""

from collections import Counter
from dataclasses import dataclass

from hdl.fpga.floorplan import CARRY, RAM

__all__ = ["NetlistSize", "size_of"]


@dataclass(frozen=True)
class NetlistSize:
    """How many cells a netlist has.

    Parameters
    ----------
    luts : int
        LUTs of four inputs.
    cells : int
        Primitives of all kinds.
    block_rams : dict
        Width of the rows to how many block RAMs have it.
    open_carries : int
        Carry chains whose input nothing drives.
    """

    luts: int
    cells: int
    block_rams: dict
    open_carries: int


def size_of(netlist, *, top):
    """Return the :class:`NetlistSize` of Yosys' JSON below the module ``top``."""
    modules = {
        name: module
        for name, module in netlist["modules"].items()
        if "blackbox" not in module["attributes"]
    }
    kinds, rams, opened = Counter(), Counter(), 0
    waiting = [top]
    while waiting:
        for cell in modules[waiting.pop()]["cells"].values():
            kind = cell["type"]
            if kind in modules:
                waiting.append(kind)
            elif not kind.startswith("$"):  # a note of Yosys
                kinds[kind] += 1
            if kind == RAM:
                rams[int(cell["parameters"]["DATA_WIDTH_B"], 2)] += 1
            if kind == CARRY:
                opened += cell["connections"]["CIN"] == ["x"]
    return NetlistSize(kinds["LUT4"], sum(kinds.values()), dict(sorted(rams.items())), opened)
