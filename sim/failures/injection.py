# SPDX-License-Identifier: Apache-2.0
"""Faults of cores in the Verilog of a bundle; the circuit that is routed has none of it.

The wires between each core and its gate pass a gate of a module ``core_faults``, which disturbs
them from a cycle on. Which core, which fault and which cycle is read from the environment when a
device is opened, so one library serves for every fault.
"""

from contextlib import contextmanager
from enum import Enum
import json
import os
import re

from hdl.manifest import fingerprint

__all__ = [
    "CoreFault",
    "VARIABLE",
    "failing",
    "variables",
    "with_faults",
    "write_changed",
    "write_faulty",
]

#: Environment variable: number of the core, the fault and the cycle, as one number.
VARIABLE = "SPLITJOIN_CORE_FAULT"


class CoreFault(Enum):
    """Fault of a core; its bits say what the core refuses: words, left and right results."""

    STOPS = 0b111
    REFUSES_WORDS = 0b001
    SILENT = 0b110
    LEFT_SILENT = 0b010
    RIGHT_SILENT = 0b100


#: Pins of the core and of its gate that a fault disturbs, by the bit of the fault.
CORE_PINS = {"i_valid": 0, "results_ready": 1, "results_ready_2": 2}
GATE_PINS = {"core_words_ready": 0, "i_valid": 1, "i_valid_2": 2}

MODULE = r"""
module core_faults (input clk, input rst, output [LAST:0] refused);
  integer fault;
  reg [31:0] cycle = 0;
  initial fault = $c32("std::getenv(\"VARIABLE\") ? ", "std::atoi(std::getenv(\"VARIABLE\")) : 0");
  always @(posedge clk) cycle <= rst ? 0 : cycle + 1;
  wire active = fault[2:0] != 0 && cycle >= (fault >> 10);
  assign refused = active ? fault[2:0] << (3 * fault[9:3]) : 0;
endmodule
"""


def code_of(core, fault, cycle):
    """Return the number of a fault, of which ``core_faults`` takes the parts."""
    return fault.value | core << 3 | cycle << 10


@contextmanager
def failing(core, fault, cycle):
    """Inject a core's fault, after so many cycles, into the devices opened within the block."""
    with variables({VARIABLE: str(code_of(core, fault, cycle))}):
        yield


@contextmanager
def variables(values):
    """Set environment variables for the duration of the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def disturbed(verilog, instance, pins, first):
    """Return Verilog in which pins of an instance of the top module pass the faults from ``first``.

    Raises
    ------
    ValueError
        If there is no such instance, or it lacks a pin.
    """
    begin = verilog.index("module splitjoin(")
    found = re.compile(rf"^  \w+ {instance} \($", re.MULTILINE).search(verilog, begin)
    if not found:
        raise ValueError(f"The Verilog has no instance {instance!r} in its top module")
    end = verilog.index("\n  );", found.end())
    text = verilog[found.end() : end]
    for pin, bit in pins.items():
        text, count = re.subn(
            rf"^(    \.{pin}\()([^()]*)(\),?)$",
            rf"\g<1>(\g<2>) & ~refused[{first + bit}]\g<3>",
            text,
            flags=re.MULTILINE,
        )
        if count != 1:
            raise ValueError(f"Instance {instance!r} has {count} connections of pin {pin!r}, not 1")
    return verilog[: found.end()] + text + verilog[end:]


def with_faults(verilog, cores):
    """Return the Verilog of an accelerator whose cores can fail.

    Parameters
    ----------
    verilog : str
        Verilog of a bundle whose cores have gates.
    cores : int
        Number of cores.
    """
    for core in range(cores):
        verilog = disturbed(verilog, f"core_{core}", CORE_PINS, 3 * core)
        verilog = disturbed(verilog, f"gate_{core}", GATE_PINS, 3 * core)
    place = verilog.index(";\n", verilog.index("module splitjoin(")) + 2
    own = f"  wire [{3 * cores - 1}:0] refused;\n"
    own += "  core_faults faults (.clk(clk), .rst(rst), .refused(refused));\n"
    module = MODULE.replace("VARIABLE", VARIABLE).replace("LAST", str(3 * cores - 1))
    return verilog[:place] + own + verilog[place:] + module


def write_faulty(bundle, folder):
    """Write a copy of a bundle whose cores can fail; return its folder.

    It has no netlist, so its library is made from the Verilog.
    """
    return write_changed(bundle, folder, with_faults)


def write_changed(bundle, folder, change):
    """Write a copy of a bundle with changed Verilog and without a netlist; return its folder.

    Parameters
    ----------
    bundle, folder : Path
        The bundle; the folder of the copy.
    change : callable
        Called with the Verilog and the number of cores; returns the changed Verilog.
    """
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    source = manifest["files"]["verilog"]
    verilog = (bundle / source).read_text(encoding="utf-8")
    verilog = change(verilog, manifest["storage"]["cores"])
    manifest["files"] = {"verilog": source}
    manifest["checksums"] = {}
    manifest["hash"] = fingerprint(manifest, verilog)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / source).write_text(verilog, encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder
