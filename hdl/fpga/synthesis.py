# SPDX-License-Identifier: Apache-2.0
"""Synthesis for the ECP5 with Yosys."""

import json
from pathlib import Path
import shutil

from .tools import YOSYS, find_tool, run_tool

__all__ = ["KEEP", "synthesize_modules", "synthesize_netlist"]

#: Components that flattening leaves alone: cores, and those with registers of their own for reset,
#: for what a block RAM is written, or for what is multiplied. Flattened, Yosys would merge these
#: into one with the fan-out of the whole chip, and would do the same to what sibling nodes of the
#: distribution tree hold, and to the enables of both sides' preparation. It also synthesizes one
#: core, not all.
KEEP = (
    "activity_tree*", "cell_preparation*", "*combiner*", "counter_bank*", "distribution_node*",
    "distribution_tree*", "ingress*", "join_core*", "late_block_ram*", "limb_multiplier*",
    "merger*", "order_queue*", "probe_preparation*", "*region*", "reset_node*",
)  # fmt: skip

#: Every module by itself, without wide LUTs: each would spend them on its own longest path.
MODULES = """\
read_verilog {top}.v
synth_ecp5 -noflatten -nowidelut -top {top}
tee -q -o modules.json stat -json
"""

#: What a register of the ECP5 has in hardware, without resets: see the file.
RESETS = Path(__file__).with_name("resets.v")
#: Registers that share an enable, at the least; fewer take it as logic.
LEAST_ENABLED = 8
#: Picoseconds of a wire between two LUTs, as nextpnr finds. Yosys' own 300 make a carry chain seem
#: as long as two LUTs more, which all other paths are then allowed to have.
WIRE = 1000
#: Of ABC9's scripts the one that maps logic as it is and restructured in three ways, and keeps the
#: best of all. It leaves half as many paths of four LUTs as the default, in 3 % fewer LUTs.
SCRIPT = "flow3mfs"

NETLIST = f"""\
read_verilog {{top}}.v
setattr -mod -set keep_hierarchy 1 {{keep}}
synth_ecp5 -top {{top}} -run begin:map_ffs
dfflegalize -cell $_DFF_P_ 01 -cell $_DFFE_PP_ 01 -cell $_SDFF_PP?_ 01 -cell $_SDFFE_PP?P_ 01
techmap -map {RESETS.name}
opt_expr
opt_merge
dfflegalize -mince {LEAST_ENABLED} -cell $_DFF_P_ 01 -cell $_DFFE_PP_ 01
opt_clean
synth_ecp5 {{options}} -top {{top}} -run map_ffs:map_luts
scratchpad -copy abc9.script.{SCRIPT} abc9.script
abc9 -W {WIRE} {{luts}}
clean
synth_ecp5 {{options}} -top {{top}} -run map_cells:
setattr -mod -unset keep_hierarchy *
flatten -noscopeinfo
opt_clean
write_json {{top}}.json
"""

SECONDS = 3600


def run_yosys(script, verilog, output, *, top, folder):
    """Write script and design into ``folder``, run Yosys there; return the path of its output."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{top}.v").write_text(verilog, encoding="utf-8")
    (folder / "synthesis.ys").write_text(script, encoding="utf-8")
    shutil.copy(RESETS, folder)
    (folder / output).unlink(missing_ok=True)
    command = [find_tool(YOSYS), "-s", "synthesis.ys"]
    run_tool(command, folder=folder, log="synthesis.log", step="yosys", deadline=SECONDS)
    return folder / output


def synthesize_modules(verilog, *, top, folder):
    """Synthesize every module by itself; return what ``stat -json`` of Yosys says.

    Parameters
    ----------
    verilog : str
        The design.
    top : str
        Its top module.
    folder : path-like
        Where design, script and log go; made if it does not exist.
    """
    script = MODULES.format(top=top)
    path = run_yosys(script, verilog, "modules.json", top=top, folder=Path(folder))
    return json.loads(path.read_text(encoding="utf-8"))


def synthesize_netlist(verilog, *, top, folder, wide_luts):
    """Synthesize the design as a whole; return the path of the netlist for nextpnr.

    In the end it is flattened, so that every cell has its full name, and can be told its site.

    Parameters
    ----------
    verilog, top, folder
        As for :func:`synthesize_modules`.
    wide_luts : bool
        With LUTs of more than four inputs, which tie two to eight of four together: a device that
        is nearly full has no room for that.
    """
    options, luts = ("", "") if wide_luts else ("-nowidelut", "-maxlut 4")
    script = NETLIST.format(top=top, keep=" ".join(KEEP), options=options, luts=luts)
    return run_yosys(script, verilog, f"{top}.json", top=top, folder=Path(folder))
