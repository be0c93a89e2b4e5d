# SPDX-License-Identifier: Apache-2.0
"""The size of a netlist in cells."""

from collections import Counter
from dataclasses import dataclass

from hdl.fpga.floorplan import CARRY, RAM

__all__ = ["NetlistSize", "size_of"]


@dataclass(frozen=True)
class NetlistSize:
    """Number of cells in a netlist.

    Parameters
    ----------
    luts : int
        LUTs with four inputs.
    cells : int
        Primitives of all kinds.
    block_rams : dict
        Number of block RAMs by the width of their rows in bits.
    open_carries : int
        Carry chains without a driven carry input.
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
            elif not kind.startswith("$"):  # not a bookkeeping cell of Yosys
                kinds[kind] += 1
            if kind == RAM:
                rams[int(cell["parameters"]["DATA_WIDTH_B"], 2)] += 1
            if kind == CARRY:
                opened += cell["connections"]["CIN"] == ["x"]
    return NetlistSize(kinds["LUT4"], sum(kinds.values()), dict(sorted(rams.items())), opened)
