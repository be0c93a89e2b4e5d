# SPDX-License-Identifier: Apache-2.0
"""Synthesis for the ECP5 with Yosys."""

from pathlib import Path
import shutil

from .tools import YOSYS, find_tool, run_tool

__all__ = ["KEEP", "run_yosys", "synthesize_netlist"]

#: Components that are not flattened before mapping. They are the cores, and components with
#: registers of their own for reset, for the write port of a block RAM, or for the operands of a
#: multiplier. In a flat design, Yosys would merge these registers into one with the fan-out of the
#: whole chip. It would do the same to the payloads of sibling nodes of the distribution tree, and
#: to the enables of both sides' preparation. With the hierarchy, it also synthesizes one core only.
KEEP = (
    "activity_tree*", "aggregate_core*", "cell_preparation*", "column_bank*", "*combiner*",
    "counter_bank*", "distribution_node*",
    "distribution_tree*", "ingress*", "join_core*", "late_block_ram*", "limb_multiplier*",
    "merger*", "order_queue*", "probe_preparation*", "*region*", "reset_node*",
    "side_exit*", "value_merger*",
)  # fmt: skip

#: Mapping to the registers that the ECP5 has in hardware, without resets; the file says why.
RESETS = Path(__file__).with_name("resets.v")
#: Least number of registers that share an enable; fewer implement it as logic.
LEAST_ENABLED = 8
#: Delay of a wire between two LUTs in picoseconds, as nextpnr finds it. With Yosys' own 300, a
#: carry chain seems two LUTs longer than it is, and all other paths are allowed to be as long.
WIRE = 1000
#: ABC9 script that maps the logic as it is and after three kinds of restructuring, and keeps the
#: best. It leaves half as many paths of four LUTs as the default, in 3 % fewer LUTs.
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
    """Write script and design into ``folder``, run Yosys there, and return its output's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{top}.v").write_text(verilog, encoding="utf-8")
    (folder / "synthesis.ys").write_text(script, encoding="utf-8")
    shutil.copy(RESETS, folder)
    (folder / output).unlink(missing_ok=True)
    command = [find_tool(YOSYS), "-s", "synthesis.ys"]
    run_tool(command, folder=folder, log="synthesis.log", step="yosys", deadline=SECONDS)
    return folder / output


def synthesize_netlist(verilog, *, top, folder, wide_luts):
    """Synthesize the design as a whole; return the path of the netlist for nextpnr.

    The netlist is flattened at the end, so that every cell has its full name and can be given a
    site.

    Parameters
    ----------
    verilog : str
        Design.
    top : str
        Name of its top module.
    folder : path-like
        Folder for design, script, netlist and log; created if it does not exist.
    wide_luts : bool
        Whether to use LUTs of more than four inputs. Each ties two to eight four-input LUTs
        together, for which a device that is nearly full has no room.
    """
    options, luts = ("", "") if wide_luts else ("-nowidelut", "-maxlut 4")
    script = NETLIST.format(top=top, keep=" ".join(KEEP), options=options, luts=luts)
    return run_yosys(script, verilog, f"{top}.json", top=top, folder=Path(folder))
