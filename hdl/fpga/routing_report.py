# SPDX-License-Identifier: Apache-2.0
"""The report of a routed accelerator as files: JSON, and Markdown for readers."""

import json
from pathlib import Path

from hdl.parameters import PRESETS

__all__ = ["design_name", "routing_markdown", "write_report"]


def design_name(parameters, preset):
    """Return a name for ``parameters``: the preset's, and whatever differs from it."""
    base = PRESETS[preset].to_dict() if preset else {}
    parts = [preset or "custom"]
    for name, value in parameters.to_dict().items():
        if name == "keys":
            text = "_".join(f"{key['name']}{key['bits']}" for key in value)
        else:
            text = f"{name.replace('_', '')}{value}"
        if base.get(name) != value and value not in (None, "scan"):
            parts.append(text if name != "comparator" else value)
    return "-".join(parts)


def table(heads, rows):
    """Return lines of a Markdown table; columns of numbers are to the right."""
    marks = ["---:" if rows and isinstance(cell, int | float) else "---" for cell in rows[0]]
    lines = [heads, marks, *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]


def digests(bits):
    """Return what comparators of digests leave to others, as a row of facts."""
    return [] if bits is None else [("compared", f"{bits} bits of a key; candidates in full")]


def routing_markdown(report):
    """Return the report of :func:`hdl.fpga.route.route` as Markdown."""
    rate = report["comparisons_per_second"]
    efficiency = report["cycle_efficiency"]
    facts = [
        ("device", f"{report['device']}, speed grade {report['speed']}"),
        ("preset", report["preset"]),
        ("predicate", report["predicate"]),
        ("comparators", report["comparators"]),
        *digests(report["parameters"].get("digest_bits")),
        ("clock", f"{report['fmax_mhz']} MHz, the slowest of {len(report['runs'])} seed(s)"),
        (
            "cycle efficiency",
            "not given" if efficiency is None
            else f"{efficiency} ({report['cycle_efficiency_source'] or 'source not given'})",
        ),
        ("comparisons per second", "—" if rate is None else f"{rate:.3g}"),
        ("tools", ", ".join(f"{name} {version}" for name, version in report["tools"].items())),
        ("command", f"`{report['command']}`"),
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
    runs = [tuple(run.values()) for run in report["runs"]]
    title = f"{report['preset'] or 'custom'}, {report['device']}, grade {report['speed']}"
    lines = [
        f"# Routing: {title}", "", *table(["", ""], facts), "",
        report["method"], "",
        "## Utilization", "", *table(["resource", "used", "of", "share"], used), "",
        "## Seeds", "", *table(["seed", "MHz", "seconds of nextpnr"], runs), "",
        "## Critical path", "",
        *table(["component", "instance", "cells", "logic ns", "routing ns"], path), "",
    ]  # fmt: skip
    if slow:
        lines += ["## Where the slowest paths end", ""]
        lines += table(["component", "register", "port", "endpoints", "ns"], slow)
        lines += [""]
    return "\n".join(lines)


def write_report(report, output, name):
    """Write ``name.json`` and ``name.md`` into the folder ``output``; return their paths."""
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        ".json": json.dumps(report, indent=2, ensure_ascii=False) + "\n",
        ".md": routing_markdown(report),
    }
    paths = [folder / f"{name}{suffix}" for suffix in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths
