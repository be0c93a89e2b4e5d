# SPDX-License-Identifier: Apache-2.0
"""Report of a routed accelerator as files: JSON, and Markdown for readers."""

import json
from pathlib import Path
from types import SimpleNamespace

from .rates import describe, per_second

__all__ = ["routing_markdown", "write_report"]

#: Entries of a report that say what the accelerator computes.
COMPUTES = ("predicate", "comparators", "aggregate")


def table(heads, rows):
    """Return the lines of a Markdown table; columns of numbers are aligned to the right."""
    marks = ["---:" if rows and isinstance(cell, int | float) else "---" for cell in rows[0]]
    lines = [heads, marks, *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]


def program(values):
    """Return the text for a program: name, version, and how to get it."""
    locked = "the locked package, " if values["locked"] else ""
    return f"`{values['name']}` {values['version']} ({locked}{values['source']})"


def rate_rows(report):
    """Return the column heads and one row per measured run: rates per second, and conditions."""
    parameters = SimpleNamespace(**report["parameters"])  # as they were when the report was made
    rows = []
    for record in report["measured"]["runs"]:
        rates = per_second(parameters, record, report["fmax_mhz"])
        rows.append(
            (
                *(f"{rates[name]:.3g}" for name in rates),
                record.get("cycle_efficiency", "—"),
                describe(record),
            )
        )
    return ["a second: " + name for name in rates] + ["cycle efficiency", "under"], rows


def rate_lines(report):
    """Return the lines of the section about rates."""
    if report["measured"] is None:
        return ["No rates: nothing was counted in simulation (`python -m sim saturate`).", ""]
    measured = report["measured"]
    return [
        *table(*rate_rows(report)), "",
        "Counted by the hardware counters of the simulated accelerator"
        + (f" (commit {measured['commit']})" if measured["commit"] else "")
        + f", times the clock above: `{measured['command']}`.",
        "",
    ]  # fmt: skip


def notes(report, earlier):
    """Return what a reader must know before the figures: an earlier design, other tools."""
    texts = []
    if earlier is not None:
        texts.append(
            f"**Of an earlier design** ({earlier}): the Verilog has changed since. The clock and "
            "the utilization are those of the design that was routed."
        )
    if not any(router["locked"] for router in report["routers"]):
        texts.append(
            "**Not with the locked packages**: no seed was routed with the packages that "
            "`make setup-fpga` installs, whose clocks differ. The command below gives other "
            "figures with them."
        )
    return [line for text in texts for line in (text, "")]


def routing_markdown(report, earlier=None):
    """Return a report as Markdown.

    Parameters
    ----------
    report : dict
        Report from :func:`hdl.fpga.route.route`.
    earlier : str or None
        The earlier design that the report belongs to; None for the current design.
    """
    facts = [
        ("device", f"{report['device']}, speed grade {report['speed']}"),
        ("preset", report["preset"]),
        *((name, report[name]) for name in COMPUTES if name in report),
        *([("inputs", f"{report['inputs']}, merged by a ScaleGate")]
          if report.get("inputs", 1) > 1 else ()),
        ("clock", f"{report['fmax_mhz']} MHz, the slowest of {len(report['runs'])} seed(s)"),
        ("synthesis", program(report["synthesis"])),
        ("place and route", "; ".join(program(router) for router in report["routers"])),
        ("command", f"`{report['command']}`"),
        ("design", f"Verilog {report['design'][:12]}"
         + (f", commit {report['commit']}" if report["commit"] else "")),
    ]  # fmt: skip
    used = [
        (name.replace("_", " ").replace("lut4", "LUT4"), use["used"], use["available"],
         f"{use['share']:.1%}")
        for name, use in report["utilization"].items()
    ]  # fmt: skip
    path = [
        (part["component"], f"`{part['instance']}`", part["cells"], part["logic_ns"],
         part["routing_ns"])
        for part in report["critical_path"]
    ]  # fmt: skip
    slow = [
        (row["component"], f"`{row['register']}`", row["port"], row["endpoints"], row["worst_ns"])
        for row in report["slow_registers"]
    ]
    runs = [
        (run["seed"], run["program"], run["fmax_mhz"], run["seconds"]) for run in report["runs"]
    ]
    name = report.get("design_name") or report["preset"] or "custom"
    title = f"{name}, {report['device']}, grade {report['speed']}"
    lines = [
        f"# Routing: {title}", "", *notes(report, earlier), *table(["", ""], facts), "",
        report["method"], "",
        "## Rates", "", *rate_lines(report),
        "## Utilization", "", *table(["resource", "used", "of", "share"], used), "",
        "## Seeds", "", *table(["seed", "program", "MHz", "seconds of nextpnr"], runs), "",
        "## Critical path", "",
        *table(["component", "instance", "cells", "logic ns", "routing ns"], path), "",
    ]  # fmt: skip
    if slow:
        lines += ["## Where the slowest paths end", ""]
        lines += table(["component", "register", "port", "endpoints", "ns"], slow)
        lines += [""]
    return "\n".join(lines)


def write_report(report, output, name, earlier=None):
    """Write ``name.json`` and ``name.md`` into the folder ``output``; return their paths.

    If ``earlier`` names an earlier design, the Markdown says that the report belongs to it.
    """
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        ".json": json.dumps(report, indent=2, ensure_ascii=False) + "\n",
        ".md": routing_markdown(report, earlier),
    }
    paths = [folder / f"{name}{suffix}" for suffix in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths
