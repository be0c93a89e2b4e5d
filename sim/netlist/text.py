# SPDX-License-Identifier: Apache-2.0
"""Print a netlist as Verilog, with unchanged cells and the models of all cells behind it."""

import json

from hdl.fpga.tools import YOSYS, find_tool, run_tool

__all__ = ["netlist_text"]

#: Removes only logic that no output depends on, which is the rest of the routing shell.
SCRIPT = """\
read_json opened.json
hierarchy -top {top}
opt_clean
delete =A:blackbox
write_verilog -noattr netlist.v
"""
SECONDS = 600


def netlist_text(netlist, models, *, top, folder):
    """Return a netlist as Verilog, with the models of its cells.

    Parameters
    ----------
    netlist : dict
        Netlist in Yosys' JSON format.
    models : str
        Verilog models of its cells.
    top : str
        Name of its top module.
    folder : Path
        Folder for intermediate files and the log.
    """
    (folder / "opened.json").write_text(json.dumps(netlist), encoding="utf-8")
    (folder / "text.ys").write_text(SCRIPT.format(top=top), encoding="utf-8")
    command = [find_tool(YOSYS), "-s", "text.ys"]
    run_tool(command, folder=folder, log="text.log", step="yosys", deadline=SECONDS)
    return (folder / "netlist.v").read_text(encoding="utf-8") + models
