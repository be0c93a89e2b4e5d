# SPDX-License-Identifier: Apache-2.0
"""``python -m hdl route``: synthesis, placement and routing of an accelerator."""

from concurrent.futures import ThreadPoolExecutor
import hashlib
import json
from pathlib import Path

from hdl.verilog import to_verilog

from .critical_path import critical_path, fmax_mhz, slow_registers, utilization
from .floorplan import lay_out
from .hierarchy import Hierarchy
from .shell import SHELL, RoutingShell
from .synthesis import synthesize_netlist
from .tools import NEXTPNR, YOSYS, find_tool, run_tool, tool_version

__all__ = ["comparators", "nextpnr_command", "route"]

#: How an accelerator is routed, for the reader of a report.
METHOD = (
    "The accelerator stands in a shell of registers (hdl.fpga.shell): a serial input feeds all of "
    "its inputs, all outputs are captured and shifted out, reset passes two registers. So pads "
    "limit nothing and nothing is optimized away; shell and accelerator together are counted. "
    "Cores, and components with a reset of their own, keep their hierarchy, for Yosys would merge "
    "equal registers of siblings; ABC9 maps LUTs as if a wire took 1 ns and takes the best of "
    "several ways (hdl/fpga/synthesis.py). Resets are logic, as registers with different ones "
    "cannot share a tile (hdl/fpga/resets.v). A scan has no wide LUTs, and the block RAMs of each "
    "of its regions stand side by side where they fit like that (hdl/fpga/floorplan.py). nextpnr "
    "uses its placer 'static' and router1. The clock is the worst case of the speed grade that "
    "nextpnr knows; nothing ran on a device."
)

#: What a report says of the slowest of its seeds alone.
OF_SLOWEST = ("utilization", "critical_path", "slow_registers", "seed", "nextpnr")


def comparators(parameters):
    """Return the comparators of an accelerator.

    A region has one for every lane and probe; with an index, one.
    """
    shared = parameters.probes if parameters.engine == "scan" else 1
    return 2 * parameters.cores * parameters.lanes * shared


def nextpnr_command(device, *, speed, seed, frequency, top=SHELL):
    """Return the arguments of nextpnr, to be run in the folder of the netlist."""
    return [
        NEXTPNR, device.flag, "--package", device.package, "--speed", str(speed),
        "--json", f"{top}.json", "--placer", "static", "--router", "router1", "--seed", str(seed),
        "--freq", f"{frequency:g}", "--timing-allow-fail", "--lpf-allow-unconstrained",
        "--detailed-timing-report", "--report", f"seed{seed}.json",
    ]  # fmt: skip


def comparison_rate(number, efficiency, fmax):
    """Return the comparisons per second of ``number`` comparators; None without an efficiency."""
    return None if efficiency is None else round(number * efficiency * fmax * 1e6)


def run_seed(device, hierarchy, folder, *, speed, seed, frequency, deadline):
    """Place and route with one seed; return what is reported of it."""
    name, *arguments = nextpnr_command(device, speed=speed, seed=seed, frequency=frequency)
    seconds = run_tool(
        [find_tool(NEXTPNR), *arguments],
        folder=folder,
        log=f"seed{seed}.log",
        step=f"nextpnr, seed {seed}",
        deadline=deadline,
    )
    timing = json.loads((folder / f"seed{seed}.json").read_text(encoding="utf-8"))
    return {
        "seed": seed,
        "fmax_mhz": fmax_mhz(timing),
        "seconds": round(seconds),
        "utilization": utilization(timing),
        "critical_path": critical_path(timing, hierarchy),
        "slow_registers": slow_registers(timing, hierarchy),
        "nextpnr": " ".join([name, *arguments]),
    }


def route(
    parameters, device, *, speed, seeds, folder, frequency, deadline, jobs=1,
    preset=None, efficiency=None, efficiency_source=None, command=None, earlier=None,
):  # fmt: skip
    """Synthesize an accelerator once, route it with every seed; return the report.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    device : Device
    speed : int
        Speed grade.
    seeds : sequence of int
        nextpnr runs once for each; the slowest result is the one that counts.
    folder : path-like
        Where netlist, scripts and logs go.
    frequency : float
        MHz that nextpnr aims at.
    deadline : float
        Seconds that one run of nextpnr may take.
    jobs : int
        Seeds that run at the same time.
    preset : str or None
        Name of the parameters.
    efficiency : float or None
        Share of its comparators that the accelerator uses per cycle; without it, the report has no
        comparisons per second.
    efficiency_source : str or None
        Where it was measured.
    command : str or None
        What was typed.
    earlier : dict or None
        A report that the seeds are added to.

    Returns
    -------
    dict
        JSON-compatible.

    Raises
    ------
    ValueError
        If the earlier report is of something else. Nothing is synthesized then.
    """
    for tool in (YOSYS, NEXTPNR):  # before the work begins
        find_tool(tool)
    folder = Path(folder)
    verilog = to_verilog(RoutingShell(parameters), name=SHELL, platform=device)
    routed = {
        "device": device.name,
        "speed": speed,
        "target_mhz": frequency,
        "design": hashlib.sha256(verilog.encode()).hexdigest(),
        "tools": {tool: tool_version(tool) for tool in (YOSYS, NEXTPNR)},
    }
    if earlier is not None:
        require_same(earlier, routed)
    hierarchy = Hierarchy(verilog, top=SHELL)
    flat = parameters.engine == "scan"
    netlist = synthesize_netlist(verilog, top=SHELL, folder=folder, flat=flat)
    placed = lay_out(netlist, top=SHELL, device=device, cores=parameters.cores) if flat else 0

    def run(seed):
        return run_seed(
            device, hierarchy, folder,
            speed=speed, seed=seed, frequency=frequency, deadline=deadline,
        )  # fmt: skip

    with ThreadPoolExecutor(jobs) as pool:
        runs = list(pool.map(run, seeds))
    report = {
        **routed,
        "preset": preset,
        "parameters": parameters.to_dict(),
        "predicate": parameters.comparator,
        "comparators": comparators(parameters),
        **outcome(runs, comparators(parameters), efficiency, efficiency_source),
        "command": command,
        "placed_block_rams": placed,
        "method": METHOD,
    }
    return report if earlier is None else merge_reports(earlier, report)


def outcome(runs, number, efficiency, efficiency_source):
    """Return what a report says of its seeds; the slowest one counts."""
    worst = min(runs, key=lambda run: run["fmax_mhz"])
    return {
        "fmax_mhz": worst["fmax_mhz"],
        "cycle_efficiency": efficiency,
        "cycle_efficiency_source": efficiency_source,
        "comparisons_per_second": comparison_rate(number, efficiency, worst["fmax_mhz"]),
        **{name: worst[name] for name in OF_SLOWEST},
        "runs": [{name: run[name] for name in ("seed", "fmax_mhz", "seconds")} for run in runs],
    }


def require_same(earlier, routed):
    """Raise ValueError unless an earlier report has the same values, and so is of the same thing.

    Parameters are not among them: the Verilog tells what they mean, and new ones may be added.
    """
    for name, value in routed.items():
        if earlier.get(name) != value:
            raise ValueError(
                f"The report that is there is of another {name}: route without --add, or all seeds"
            )


def merge_reports(earlier, later):
    """Return the report of the seeds of both, which are of the same design; the slowest counts.

    ``earlier`` comes from a file. A seed that was routed twice is reported as it was the last time.
    """
    runs = {run["seed"]: run for report in (earlier, later) for run in report["runs"]}
    slowest = min(runs.values(), key=lambda run: run["fmax_mhz"])
    of_slowest = later if slowest in later["runs"] else earlier
    return {
        **later,
        **{name: of_slowest[name] for name in ("fmax_mhz", *OF_SLOWEST)},
        "comparisons_per_second": comparison_rate(
            later["comparators"], later["cycle_efficiency"], of_slowest["fmax_mhz"]
        ),
        "runs": [runs[seed] for seed in sorted(runs)],
        "command": f"{earlier['command']}; {later['command']}",
    }
