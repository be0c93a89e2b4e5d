# SPDX-License-Identifier: Apache-2.0
"""Make the bitstream of a board, beside the bundle that a host opens it with."""

import json
from pathlib import Path
import shlex

from hdl.bundle import write_bundle
from hdl.fpga.tools import find_tool, run_tool

from .flows import FLOWS, board_report, report_text
from .top import BoardTop, EthernetTop

__all__ = ["ClockMissed", "make_bitstream"]

#: nextpnr's names of packages where amaranth-boards has other ones.
PACKAGES = {"BG381": "CABGA381", "BG554": "CABGA554"}


class ClockMissed(ValueError):
    """The routed design is slower than the clock of its board."""


def device_options(board, platform):
    """Return what the tools have to know about the device, by the names in the flows."""
    if board.family == "gowin":
        return {"part": platform.part, "series": platform.family.replace("GW1NR", "GW1N")}
    if board.family == "ice40":
        part = platform.device.lower().removeprefix("ice40")  # iCE40HX8K
        return {"series": part[:2], "part": part, "package": platform.package.lower()}
    if board.family == "gatemate":
        return {}
    if board.family == "nexus":
        return {"part": f"{platform.device}-{platform.speed}{platform.package}{platform.grade}"}
    # LFE5U-45F, or LFE5UM5G-45F with transceivers.
    kind, _, size = platform.device.removeprefix("LFE5").removesuffix("F").partition("-")
    size = f"{size}k" if kind == "U" else f"{kind.lower()}-{size}k"
    return {"size": size, "package": PACKAGES[platform.package], "speed": platform.speed}


def make_bitstream(board, parameters, folder, *, preset=None, seed=1):
    """Write bundle, bitstream and report of a board into a folder.

    Parameters
    ----------
    board : Board
        The board.
    parameters : JoinParameters
        The accelerator.
    folder : path-like
        Folder; ``bundle`` in it is what a host opens the board with.
    preset : str or None
        Name of the parameters for the report.
    seed : int
        Seed of nextpnr.

    Returns
    -------
    dict
        The report, which is also in ``report.json`` and ``README.md`` of the folder.

    Raises
    ------
    ToolError
        If a tool is missing, fails or takes too long; the message names its log.
    ClockMissed
        If the design does not reach the clock of the board.
    """
    folder, flow = Path(folder), FLOWS[board.family]
    tools = [find_tool(step.tool) for step in flow.steps]  # fails before the work begins
    work = folder / "work"
    manifest = write_bundle(parameters, folder / "bundle")
    platform = board.make_platform()
    top = (BoardTop if board.ethernet is None else EthernetTop)(
        board, parameters, digest=manifest["hash"]
    )
    files = platform.prepare(top, "top").files
    work.mkdir(parents=True, exist_ok=True)
    for name in ("top.il", f"top.{flow.constraints}"):
        text = files[name]
        (work / name).write_bytes(text.encode() if isinstance(text, str) else text)
    options = {**device_options(board, platform), "seed": seed, "mhz": board.mhz}
    for tool, step in zip(tools, flow.steps, strict=True):
        command = [tool, *shlex.split(step.arguments.format(**options))]
        run_tool(
            command, folder=work, log=f"{step.tool}.log", step=f"{board.name}: {step.tool}",
            deadline=step.seconds,
        )  # fmt: skip
    bitstream = folder / f"{board.name}.{flow.file.rpartition('.')[2]}"
    (work / flow.file).replace(bitstream)
    routed = json.loads((work / "report.json").read_text(encoding="utf-8"))
    report = board_report(
        board, flow, parameters, routed, preset=preset, digest=manifest["hash"], seed=seed,
        bitstream=bitstream,
    )  # fmt: skip
    (folder / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(report_text(report), encoding="utf-8")
    missed = [
        f"{name!r} reaches {clock['mhz']} of {clock['needed']} MHz"
        for name, clock in report["clocks"].items()
        if clock["mhz"] < clock["needed"]
    ]
    if report["fmax_mhz"] < board.mhz or missed:
        raise ClockMissed(
            f"{board.name} has a clock of {board.mhz} MHz, and this accelerator reaches "
            f"{report['fmax_mhz']} MHz there ({', '.join(missed)}); see {folder / 'README.md'} for "
            "the slowest path, and choose an accelerator with fewer cores or lanes"
        )
    return report
