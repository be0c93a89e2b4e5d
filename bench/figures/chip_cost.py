# SPDX-License-Identifier: Apache-2.0
"""How far the cost that ``python -m hdl cost`` tells is from what nextpnr has placed."""

import json
from pathlib import Path

from hdl.fpga.cost import cost_report
from hdl.fpga.devices import find_device
from hdl.fpga.provenance import design_hash, identify, routed_verilog
from hdl.fpga.reports import published, routed_parameters
from hdl.fpga.tools import YOSYS
from hdl.presets import PRESETS

from .registry import NotMeasured, Result, figure

__all__ = ["errors_of", "kept_cost"]

#: Resources, as a routing report and as a cost names them.
RESOURCES = {"lut4": "logic_cells", "registers": "registers", "block_rams": "block_rams"}
#: Folder of the costs that were told before.
KEPT = Path("build") / "cost-figures"


def errors_of(routed, cost):
    """Return by how much each resource of a cost differs from a routing report, as a share of it.

    The shell is part of both.
    """
    used = {name: routed["utilization"][name]["used"] for name in RESOURCES}
    told = {name: cost["total"][key] + cost["shell"][key] for name, key in RESOURCES.items()}
    return {name: told[name] / used[name] - 1 for name in RESOURCES}


def kept_cost(preset, device, design, *, folder=KEPT):
    """Return the cost of a preset: as it was told before, if design and Yosys are the same."""
    path, program = folder / f"{preset}-{device.name}.json", identify(YOSYS).to_dict()
    if path.is_file():
        kept = json.loads(path.read_text(encoding="utf-8"))
        if (kept["design"], kept["synthesis"]) == (design, program):
            return kept
    cost = cost_report(PRESETS[preset], device, folder=folder / preset, preset=preset)
    path.write_text(json.dumps(cost), encoding="utf-8")
    return cost


@figure("hdl.cost.worst_error", unit="", goal="<= 0.1")
def worst_error(report):
    """Largest error of ``python -m hdl cost`` in LUTs, registers or block RAMs of a routed preset.

    A share of what nextpnr has placed. Only the routing reports of the current design count. A
    preset takes a minute or two, but none if it was measured before.
    """
    worst, earlier, notes, details = 0.0, [], [], {}
    for routed in published().values():
        if routed.get("inputs", 1) > 1:  # an accelerator with its merge
            continue
        preset, device = routed["preset"], find_device(routed["device"])
        if preset is None or routed_parameters(routed) != PRESETS.get(preset):
            continue
        design = design_hash(routed_verilog(PRESETS[preset], device))
        if design != routed["design"]:
            earlier.append(preset)
            continue
        report(f"cost of {preset}")
        details[preset] = errors_of(routed, kept_cost(preset, device, design))
        worst = max(worst, *map(abs, details[preset].values()))
        told = ", ".join(f"{name} {error:+.1%}" for name, error in details[preset].items())
        notes.append(f"{preset}: {told}")
    if not details:
        raise NotMeasured("No routing report is of the current design; route one: make route")
    if earlier:
        notes.append(f"reports of an earlier design do not count: {', '.join(earlier)}")
    return Result(worst, notes=tuple(notes), details={"errors": details})
