# SPDX-License-Identifier: Apache-2.0
"""Faults put into the netlist of a scan, each of which a run has to notice."""

from hdl.comparison.carry_chain import OPEN_TABLES
from hdl.fpga.floorplan import CARRY, RAM
from hdl.fpga.shell import SHELL

__all__ = ["MUTANTS"]


def first(netlist, kind, part="", wanted=lambda cell: True):
    """The first cell of a kind, by name, whose name holds ``part``."""
    cells = netlist["modules"][SHELL]["cells"]
    return next(
        cells[name]
        for name in sorted(cells)
        if cells[name]["type"] == kind and part in name and wanted(cells[name])
    )


def inverted_lut(netlist):
    """A LUT of a comparison gives the opposite."""
    parameters = first(netlist, "LUT4", "core_0.left.engine.scanner")["parameters"]
    parameters["INIT"] = parameters["INIT"].translate(str.maketrans("01", "10"))


def lost_reset(netlist):
    """The combiner is never reset."""
    first(netlist, "TRELLIS_FF", "combiner.reset_stages")["connections"]["DI"] = ["0"]


def early_block_ram(netlist):
    """A block RAM has no output register."""
    first(netlist, RAM)["parameters"]["REGMODE_B"] = "NOREG"


def unwritten_byte(netlist):
    """A block RAM never writes the lowest nine bits of a row."""
    first(netlist, RAM)["connections"]["ADA0"] = ["0"]


def open_carry(netlist):
    """The carry input of an adder is left open."""

    def adds(cell):
        table = int(cell["parameters"]["INIT0"], 2)
        return cell["connections"]["CIN"] == ["0"] and table not in OPEN_TABLES

    first(netlist, CARRY, "core_0.right", adds)["connections"]["CIN"] = ["x"]


def ignored_enable(netlist):
    """A register of the ingress is loaded in every cycle."""
    cell = first(netlist, "TRELLIS_FF", "ingress", lambda cell: cell["parameters"]["CEMUX"] == "CE")
    cell["parameters"]["CEMUX"] = "1 "


#: Name to a function that changes a netlist.
MUTANTS = {
    mutant.__name__: mutant
    for mutant in (
        inverted_lut, lost_reset, early_block_ram, unwritten_byte, open_carry, ignored_enable,
    )
}  # fmt: skip
