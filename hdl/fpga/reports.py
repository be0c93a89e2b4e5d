# SPDX-License-Identifier: Apache-2.0
"""Routing reports: rates, seeds, pages, and the clock that a manifest tells."""

import importlib.metadata
import json
from pathlib import Path

from hdl.aggregate.aggregate_parameters import AGGREGATE_PRESETS, AggregateParameters
from hdl.parameters import JoinParameters
from hdl.presets import PRESETS, TWINS

from .devices import DEVICES, SPEEDS, find_device
from .provenance import ROOT, design_hash, routed_verilog

__all__ = [
    "CURRENT",
    "OF_SLOWEST",
    "ONE_IN",
    "REPORTS",
    "conditions",
    "counted",
    "describe",
    "design_name",
    "earlier_design",
    "merge_reports",
    "of_parameters",
    "outcome",
    "per_second",
    "published",
    "reports_root",
    "require_same",
    "routed_clock",
    "routed_parameters",
    "routing_markdown",
    "write_report",
]


# A rate means little without its conditions, so the two are one record: how many probes share a
# star, how often a pair matches, how large the windows were, how much of a key is compared.

#: Default odds of a match: about one pair in so many matches, as in the paper's benchmark.
ONE_IN = 250_000


def counted(parameters, counts, *, precision, window, one_in):
    """Return the record of a run with full windows.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    counts : dict
        Increments of its hardware counters during the run.
    precision : int
        Probes of a side from star to star.
    window : int
        Tuples per side.
    one_in : int
        Odds of a match: about one in so many pairs matches.
    """
    tuples = counts["tuples_r"] + counts["tuples_s"]
    names = ("cycles", "comparisons", "results", "stars")
    record = {
        "precision": precision,
        "window": window,
        "matches_one_in": one_in,
        "results_per_tuple": round(counts["results"] / tuples, 4),
        "compared_bits": parameters.engine.digest_bits or sum(key.bits for key in parameters.keys),
        "key_bits": sum(key.bits for key in parameters.keys),
        "timestamp_bits": parameters.timestamp_bits,
        "counters": {"tuples": tuples, **{name: counts[name] for name in names}},
    }
    if parameters.engine.counted == "comparisons":
        share = counts["comparisons"] / (parameters.comparators * counts["cycles"])
        record["cycle_efficiency"] = round(share, 4)
    return record


def per_second(engine, record, mhz):
    """Return the number of pairs and of tuples per second of an engine at a clock of ``mhz``."""
    counters = record["counters"]
    main = counters[engine.counted]
    counts = {engine.rate: main, "tuples": counters["tuples"]}
    return {name: round(count / counters["cycles"] * mhz * 1e6) for name, count in counts.items()}


def conditions(record):
    """Return the conditions of a record, which is everything except the counters."""
    return {name: value for name, value in record.items() if name != "counters"}


def describe(record):
    """Return the conditions of a record in words."""
    precision, time = record["precision"], record["timestamp_bits"]
    groups = "groups of one (strict outer order)" if precision == 1 else f"a star per {precision}"
    return ", ".join(
        [
            groups if precision == 1 else f"{groups} probes of a side",
            f"1 pair in {record['matches_one_in']:,} matches",
            f"{record['results_per_tuple']:.3g} results per tuple",
            f"windows of {record['window']:,} per side",
            f"{record['compared_bits']} of {record['key_bits']} key bits compared",
            f"timestamps of {time} bits" if time else "no timestamps",
        ]
    )


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
    # Parameters as they were when the report was made, which need not be legal in this kit.
    engine = JoinParameters.kind_at("engine", report["parameters"])
    rows = []
    for record in report["measured"]["runs"]:
        rates = per_second(engine, record, report["fmax_mhz"])
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


#: Fields of a report that describe its slowest seed only.
OF_SLOWEST = (
    "fmax_mhz", "utilization", "critical_path", "slow_registers", "seed", "program", "nextpnr",
)  # fmt: skip

#: Fields of a report that describe every seed.
OF_EACH = ("seed", "program", "fmax_mhz", "seconds")


def outcome(runs, router):
    """Return the fields of a report on seeds that ran with the program ``router``."""
    worst = min(runs, key=lambda run: run["fmax_mhz"])
    return {
        **{name: worst[name] for name in OF_SLOWEST},
        "routers": [router.to_dict()],
        "runs": [{name: run[name] for name in OF_EACH} for run in runs],
    }


def require_same(earlier, routed):
    """Raise ValueError unless an earlier report has the same values, and so the same design.

    Parameters are not among the values: the Verilog stands for them, and new ones may be added.
    """
    for name, value in routed.items():
        if earlier.get(name) != value:
            raise ValueError(
                f"The existing report has another {name}: route without --add, or route all seeds"
            )


def merge_reports(earlier, later):
    """Return the report on the seeds of two reports of the same design; the slowest seed counts.

    ``earlier`` was read from a file. If the same program routed a seed twice, the later result is
    reported. Results of another build of the same release stand beside it.
    """
    runs = {
        (run["seed"], run["program"]): run
        for report in (earlier, later)
        for run in report["runs"]
    }  # fmt: skip
    routers = {each["name"]: each for report in (earlier, later) for each in report["routers"]}
    slowest = min(runs.values(), key=lambda run: run["fmax_mhz"])
    of_slowest = later if slowest in later["runs"] else earlier
    return {
        **later,
        **{name: of_slowest[name] for name in OF_SLOWEST},
        "routers": list(routers.values()),
        "runs": [runs[key] for key in sorted(runs)],
        "measured": later["measured"] or earlier["measured"],
        "command": f"{earlier['command']}; {later['command']}",
    }


def design_name(parameters, preset):
    """Return a name for ``parameters``: that of the preset, with every value that differs."""
    base = (PRESETS | AGGREGATE_PRESETS)[preset].words() if preset else {}
    parts = [preset or "custom"]
    for name, value in parameters.words().items():
        if name == "operator":
            text = value["name"]
        elif name == "architecture":
            text = value.rpartition(":")[2].replace("_", "-")
        elif name == "comparator":
            text = value
        elif name == "keys" and not isinstance(value, int):
            text = "_".join(f"{key['name']}{key['bits']}" for key in value)
        else:
            text = f"{name.replace('_', '')}{value}"
        if base.get(name) != value and value not in (None, "scan"):
            parts.append(text)
    return "-".join(parts)


#: Folder of the reports.
REPORTS = Path("docs") / "routing"
#: Presets whose report must belong to the current design: the one that is routed in minutes. A
#: report of an earlier design says so.
CURRENT = ("ecp5-index",)
#: Parameters that no longer exist, with the values that every accelerator now implies.
GONE = {"pipelined": True}


def published(folder=REPORTS):
    """Return the reports in ``folder``, by the paths of their JSON files."""
    return {
        path: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(Path(folder).glob("*.json"))
    }


def routed_parameters(report):
    """Return the parameters of a report, or None if it has parameters that no longer exist."""
    values = report["parameters"].items()
    try:
        if "operator" in report["parameters"]:
            return AggregateParameters.of(**report["parameters"])
        return JoinParameters.of(**dict(item for item in values if item not in GONE.items()))
    except ValueError:
        return None


def is_named_alike(report, parameters):
    """Return whether the preset of a report is still the one that was routed, changes included."""
    preset = report["preset"]
    if preset is not None and preset not in PRESETS | AGGREGATE_PRESETS:
        return False
    named = report.get("design_name") or preset
    return preset is None or design_name(parameters, preset) == named


def earlier_design(report):
    """Return the earlier design that a report belongs to, or None if the design is the current one.

    Parameters
    ----------
    report : dict
        Report from :func:`hdl.fpga.route.route`.

    Returns
    -------
    str or None
        The commit that was routed, if known, and the hash of the Verilog.
    """
    parameters = routed_parameters(report)
    if parameters is not None and is_named_alike(report, parameters):
        verilog = routed_verilog(parameters, find_device(report["device"]), report.get("inputs", 1))
        if design_hash(verilog) == report["design"]:
            return None
    commit = report.get("commit")
    return (f"commit {commit}, " if commit else "") + f"Verilog {report['design'][:12]}"


def of_parameters(measurement, parameters):
    """Return the part of a ``python -m sim saturate`` measurement that a report keeps.

    Raises
    ------
    ValueError
        If the measurement has other parameters.
    """
    first = JoinParameters.of(**measurement["parameters"]).words()
    second = parameters.words()
    differing = ", ".join(
        f"{name} {first[name]!r} instead of {second[name]!r}"
        for name in first
        if first[name] != second[name]
    )
    if differing:
        raise ValueError(f"The measurement is of other parameters than the route: {differing}")
    return {name: measurement[name] for name in ("command", "commit", "runs")}


#: Where the wheel puts the reports, below the environment's folder (``pyproject.toml``).
SHARED = "share/splitjoin-kit"


def reports_root():
    """Return the folder with ``docs/routing``: the checkout, or what pip has installed of it."""
    if (ROOT / REPORTS).is_dir():
        return ROOT
    try:
        files = importlib.metadata.files("splitjoin-kit") or ()
    except importlib.metadata.PackageNotFoundError:
        return ROOT
    pattern = f"{SHARED}/{REPORTS.as_posix()}/*.json"
    found = next((file for file in files if file.match(pattern)), None)
    return ROOT if found is None else Path(found.locate()).resolve().parents[len(REPORTS.parts)]


def find_report(preset, root):
    """Return the path of a preset's routing report relative to ``root``, or None without one.

    If there are several, it is the one for the largest device at its fastest speed grade.
    """
    for device in reversed(DEVICES):
        for speed in reversed(SPEEDS):
            path = REPORTS / f"{preset}-{device}-grade{speed}.json"
            if (root / path).is_file():
                return path
    return None


def routed_clock(parameters, *, root=None):
    """Return what the manifest of an accelerator states about its clock on a device.

    To tell whether the report belongs to the current design, the routed design is generated, which
    takes seconds for a full chip.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    root : Path, optional
        Folder that contains the routing reports; by default, :func:`reports_root`.

    Returns
    -------
    dict or None
        None unless the parameters are those of a preset that has a routing report, or whose twin
        has one. Otherwise:

        - ``preset``: the preset that was routed; ``twin``: whether it stands in for another one;
        - ``capacity``: number of tuples that it holds per side;
        - ``device``, ``speed``: the device, and its speed grade;
        - ``mhz``: clock of the slowest seed;
        - ``report``: path of the report in the checkout;
        - ``earlier_design``: None if the report belongs to the current design, else which design it
          belongs to.
    """
    name = next((name for name, preset in PRESETS.items() if preset == parameters), None)
    routed = TWINS.get(name, name)
    root = root or reports_root()
    path = routed and find_report(routed, root)
    if path is None:
        return None
    report = json.loads((root / path).read_text(encoding="utf-8"))
    return {
        "preset": routed,
        "twin": routed != name,
        "capacity": report["parameters"]["cores"] * report["parameters"]["sub_window"],
        "device": report["device"],
        "speed": report["speed"],
        "mhz": report["fmax_mhz"],
        "report": path.as_posix(),
        "earlier_design": earlier_design(report),
    }
