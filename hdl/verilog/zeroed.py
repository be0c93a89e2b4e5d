# SPDX-License-Identifier: Apache-2.0
"""Memories that begin with zeros, in Verilog and in a netlist.

Amaranth would write the contents row by row, which takes minutes for a large memory. So a memory is
made without contents, and those that have the name :data:`ZEROED` get a loop.
"""

import re

__all__ = ["ZEROED", "with_zeros", "without_contents", "zeros"]

#: Name of the submodule of a component that is a memory which begins with zeros.
ZEROED = "zeroed"

#: Declaration of such a memory in the Verilog of Yosys.
DECLARED = re.compile(rf"^  reg \[(\d+):0\] ({ZEROED}(?:_\d+)?) \[(\d+):0\];\n", re.MULTILINE)


def zeros(name, rows, width):
    """Return lines of Verilog that let a memory begin with zeros.

    Parameters
    ----------
    name : str
        Name of the memory.
    rows, width : int
        Number of rows; bits of a row.
    """
    bits = (rows - 1).bit_length() or 1
    count = f"{name}_row"
    return [
        f"  reg [{bits}:0] {count};",
        f"  initial for ({count} = 0; {count} < {rows}; {count} = {count} + {bits + 1}'h1)",
        f"    {name}[{count}[{bits - 1}:0]] = {width}'h0;",
    ]


def with_zeros(verilog):
    """Return Verilog in which every memory with the name :data:`ZEROED` begins with zeros."""

    def begun(match):
        lines = zeros(match[2], int(match[3]) + 1, int(match[1]) + 1)
        return match[0] + "\n".join(lines) + "\n"

    return DECLARED.sub(begun, verilog)


def without_contents(cell):
    """Shorten the contents of a memory in a netlist: ``"0"`` for zeros, ``"x"`` for anything.

    Parameters
    ----------
    cell : dict
        A cell as Yosys writes it; one that is no memory is left as it is.
    """
    init = cell["parameters"].get("INIT", "")
    if not init or init.strip("x"):
        return
    name = cell["parameters"].get("MEMID", "").removeprefix("\\")
    cell["parameters"]["INIT"] = "0" if re.fullmatch(rf"{ZEROED}(_\d+)?", name) else "x"
