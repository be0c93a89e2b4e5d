# SPDX-License-Identifier: Apache-2.0
"""Faults in the netlist of a scan, all in one library: the environment chooses one of them."""

from hdl.ecp5 import OPEN_TABLES
from hdl.fpga.floorplan import CARRY, RAM
from hdl.fpga.shell import SHELL
from sim.netlist.cells import cell_models

__all__ = ["FAULTS", "VARIABLE", "add_faults", "models_with_faults"]

#: Environment variable with the number of a fault; without it, there is none.
VARIABLE = "NETLIST_FAULT"

#: Tables of a LUT, A being what a pin had, and B a fault: ~A, 0 and 1 while there is the fault.
INVERTED, ZERO, ONE = f"{0x6666:016b}", f"{0x2222:016b}", f"{0xEEEE:016b}"


def anything(cell):
    """Every cell."""
    return True


def adds(cell):
    """A carry chain whose input matters."""
    table = int(cell["parameters"]["INIT0"], 2)
    return cell["connections"]["CIN"] == ["0"] and table not in OPEN_TABLES


#: Name: type of a cell, part of its name, which of these, its pin, and what becomes of the pin.
FAULTS = {
    "a comparison gives the opposite": (
        "TRELLIS_FF", "core_0.left.engine.scanner.slot_0.matches_", anything, "DI", INVERTED,
    ),
    "the combiner is never reset": ("TRELLIS_FF", "combiner.reset_stages", anything, "DI", ZERO),
    "a byte of a block RAM is never written": (RAM, "left", anything, "ADA0", ZERO),
    "an adder has a carry input": (CARRY, "core_0.right", adds, "CIN", ONE),
    "block RAMs have no output register": None,
}  # fmt: skip

#: The number is read when a device is opened.
MODULE = r"""
module FAULTS (output [LAST:0] chosen);
  integer number;
  initial
    number = $c32("std::getenv(\"VARIABLE\") ? ", "std::atoi(std::getenv(\"VARIABLE\")) : -1");
  assign chosen = number < 0 ? 0 : 1 << number;
endmodule
""".replace("VARIABLE", VARIABLE).replace("LAST", str(len(FAULTS) - 1))
OUTPUT = 'REGMODE_B == "OUTREG"'


def add_faults(netlist):
    """Let each pin of :data:`FAULTS` pass a LUT that a module ``FAULTS`` controls."""
    cells = netlist["modules"][SHELL]["cells"]
    bits = [
        bit
        for cell in cells.values()
        for pins in cell["connections"].values()
        for bit in pins
        if isinstance(bit, int)
    ]
    free = max(bits) + 1
    chosen = list(range(free, free + len(FAULTS)))
    names = sorted(cells)
    for number, fault in enumerate(FAULTS.values()):
        if fault is None:
            continue
        kind, part, wanted, pin, table = fault
        name = next(n for n in names if cells[n]["type"] == kind and part in n and wanted(cells[n]))
        pins, changed = cells[name]["connections"], chosen[-1] + 1 + number
        inputs = {"A": pins[pin], "B": [chosen[number]], "C": ["0"], "D": ["0"]}
        cells[f"fault_{number}"] = {
            "type": "LUT4",
            "parameters": {"INIT": table},
            "attributes": {},
            "port_directions": {**dict.fromkeys(inputs, "input"), "Z": "output"},
            "connections": {**inputs, "Z": [changed]},
        }
        pins[pin] = [changed]
    cells["faults"] = {
        "type": "FAULTS",
        "parameters": {},
        "attributes": {"keep": "1"},
        "port_directions": {"chosen": "output"},
        "connections": {"chosen": chosen},
    }


def models_with_faults():
    """Return models of cells in which the fault without a pin can be chosen, too."""
    models = cell_models()
    assert models.count(OUTPUT) == 1
    last = len(FAULTS) - 1
    faulty = models.replace(OUTPUT, f"{OUTPUT} && !splitjoin.faults.chosen[{last}]")
    return faulty + MODULE
