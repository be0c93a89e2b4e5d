# SPDX-License-Identifier: Apache-2.0
"""``python -m hdl route``: synthesis, placement and routing of an accelerator."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
import json
from pathlib import Path

from .critical_path import Hierarchy, critical_path, fmax_mhz, slow_registers, utilization
from .devices import Device
from .floorplan import lay_out, require_room
from .provenance import commit, design_hash, identify, routed_verilog
from .reports import design_name, merge_reports, outcome, require_same
from .shell import SHELL
from .synthesis import synthesize_netlist
from .tools import NEXTPNR, YOSYS, find_tool, run_tool

__all__ = ["Target", "nextpnr_command", "placed_netlist", "route"]

#: How an accelerator is routed, in words for the reader of a report.
METHOD = (
    "The accelerator stands in a shell of registers (hdl.fpga.shell): a serial input feeds all of "
    "its inputs, all outputs are captured and shifted out, reset passes two registers. So pads "
    "limit nothing and nothing is optimized away; shell and accelerator together are counted. "
    "Cores, and components with a reset of their own, keep their hierarchy, for Yosys would merge "
    "equal registers of siblings; ABC9 maps LUTs as if a wire took 1 ns and takes the best of "
    "several ways (hdl/fpga/synthesis.py). Resets are logic, as registers with different ones "
    "cannot share a tile (hdl/fpga/resets.v). A scan has no wide LUTs, and the block RAMs of each "
    "of its regions stand side by side where they fit like that; those of an index stand around "
    "the middle of their region, and multipliers side by side in the middle of the device "
    "(hdl/fpga/floorplan.py). nextpnr uses its placer 'static' and router1. The clock is the worst "
    "case of the speed grade that nextpnr knows; nothing ran on a device."
)


def nextpnr_command(device, *, speed, seed, frequency, top=SHELL):
    """Return the command line of nextpnr, to be run in the folder of the netlist."""
    return [
        NEXTPNR, device.flag, "--package", device.package, "--speed", str(speed),
        "--json", f"{top}.json", "--placer", "static", "--router", "router1", "--seed", str(seed),
        "--freq", f"{frequency:g}", "--timing-allow-fail", "--lpf-allow-unconstrained",
        "--detailed-timing-report", "--report", f"seed{seed}.json",
    ]  # fmt: skip


def placed_netlist(verilog, parameters, device, *, folder):
    """Make the netlist that nextpnr routes: synthesize it, edit it, fix cells to their sites.

    Parameters
    ----------
    verilog : str
        Verilog from :func:`hdl.fpga.provenance.routed_verilog`.
    parameters : JoinParameters
        Parameters of the accelerator.
    device : Device
    folder : pathlib.Path
        Folder for netlist, script and log.

    Returns
    -------
    netlist : pathlib.Path
        Netlist as Yosys' JSON.
    placed : dict of str to int
        Number of cells with fixed sites, by type.
    """
    netlist = synthesize_netlist(
        verilog, top=SHELL, folder=folder, wide_luts=parameters.engine.wide_luts
    )
    placed = lay_out(
        netlist, top=SHELL, device=device, cores=parameters.cores, rings=parameters.rings
    )
    return netlist, placed


@dataclass(frozen=True, kw_only=True)
class Target:
    """What an accelerator is routed for.

    Parameters
    ----------
    device : Device
    speed : int
        Speed grade.
    frequency : float
        Target frequency of nextpnr in MHz.
    deadline : float
        Time limit of one nextpnr run in seconds.
    """

    device: Device
    speed: int
    frequency: float
    deadline: float


def run_seed(target, hierarchy, folder, router, seed):
    """Place and route with one seed and the program ``router``; return the seed's results."""
    _, *arguments = nextpnr_command(
        target.device, speed=target.speed, seed=seed, frequency=target.frequency
    )
    seconds = run_tool(
        [find_tool(NEXTPNR), *arguments],
        folder=folder,
        log=f"seed{seed}.log",
        step=f"nextpnr, seed {seed}",
        deadline=target.deadline,
    )
    timing = json.loads((folder / f"seed{seed}.json").read_text(encoding="utf-8"))
    return {
        "seed": seed,
        "program": router.name,
        "fmax_mhz": fmax_mhz(timing),
        "seconds": round(seconds),
        "utilization": utilization(timing),
        "critical_path": critical_path(timing, hierarchy),
        "slow_registers": slow_registers(timing, hierarchy),
        "nextpnr": " ".join([router.name, *arguments]),
    }


def route(
    parameters, target, *, seeds, folder, jobs=1, inputs=1, preset=None, measured=None,
    command=None, earlier=None,
):  # fmt: skip
    """Synthesize an accelerator once, route it with every seed, and return the report.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    target : Target
    seeds : sequence of int
        Seeds for nextpnr, which runs once per seed; the slowest result is the one reported.
    folder : path-like
        Folder for netlist, scripts and logs.
    jobs : int
        Number of seeds that run in parallel.
    inputs : int
        Inputs that are merged in front of the accelerator (:class:`hdl.fpga.shell.RoutingShell`).
    preset : str or None
        Name of the preset.
    measured : dict or None
        Counts of ``python -m sim saturate`` for an accelerator of these parameters; without them,
        the report has no rates.
    command : str or None
        Command line, repeated in the report.
    earlier : dict or None
        Report to which the seeds are added.

    Returns
    -------
    dict
        Report as JSON-compatible values.

    Raises
    ------
    ValueError
        If the earlier report differs in design, device, settings or tools; nothing is synthesized
        then. If the design has no room on the device; nothing is placed then.
    """
    synthesis, router = identify(YOSYS), identify(NEXTPNR)
    for tool in (YOSYS, NEXTPNR):  # fails before the work begins
        find_tool(tool)
    folder, device = Path(folder), target.device
    verilog = routed_verilog(parameters, device, inputs)
    routed = {
        "device": device.name,
        "speed": target.speed,
        "target_mhz": target.frequency,
        "design": design_hash(verilog),
        "synthesis": synthesis.to_dict(),
        "nextpnr_release": router.release,
    }
    if earlier is not None:
        require_same(earlier, routed)
    hierarchy = Hierarchy(verilog, top=SHELL)
    netlist, placed = placed_netlist(verilog, parameters, device, folder=folder)
    require_room(netlist, device, top=SHELL)

    def run(seed):
        return run_seed(target, hierarchy, folder, router, seed)

    with ThreadPoolExecutor(jobs) as pool:
        runs = list(pool.map(run, seeds))
    report = {
        **routed,
        "commit": commit(),
        "preset": preset,
        "design_name": design_name(parameters, preset),
        "parameters": parameters.words(),
        "inputs": inputs,
        **parameters.computes,
        **outcome(runs, router),
        "measured": measured,
        "command": command,
        "placed": placed,
        "method": METHOD,
    }
    return report if earlier is None else merge_reports(earlier, report)
