# SPDX-License-Identifier: Apache-2.0
"""A netlist as Verilog: cells as they are, and the models of all cells behind them."""

import json

from hdl.fpga.tools import YOSYS, find_tool, run_tool

__all__ = ["netlist_text"]

#: Only what no output depends on is left out: the rest of the routing shell.
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
        Yosys' JSON.
    models : str
        Verilog of its cells.
    top : str
        Its top module.
    folder : Path
        Where files and log go.
    """
    (folder / "opened.json").write_text(json.dumps(netlist), encoding="utf-8")
    (folder / "text.ys").write_text(SCRIPT.format(top=top), encoding="utf-8")
    command = [find_tool(YOSYS), "-s", "text.ys"]
    run_tool(command, folder=folder, log="text.log", step="yosys", deadline=SECONDS)
    return (folder / "netlist.v").read_text(encoding="utf-8") + models
