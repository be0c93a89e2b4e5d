# SPDX-License-Identifier: Apache-2.0
"""Published routing reports, and whether each of them belongs to the current design."""

import json
from pathlib import Path

from hdl.aggregate.aggregate_parameters import AggregateParameters
from hdl.aggregate.presets import AGGREGATE_PRESETS
from hdl.parameters import JoinParameters
from hdl.presets import PRESETS

from .design_name import design_name
from .devices import find_device
from .provenance import design_hash, routed_verilog

__all__ = [
    "CURRENT",
    "REPORTS",
    "earlier_design",
    "of_parameters",
    "published",
    "routed_parameters",
]

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
            return AggregateParameters.from_dict(report["parameters"])
        return JoinParameters.from_dict(dict(item for item in values if item not in GONE.items()))
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
    first = JoinParameters.from_dict(measurement["parameters"]).to_dict()
    second = parameters.to_dict()
    differing = ", ".join(
        f"{name} {first[name]!r} instead of {second[name]!r}"
        for name in first
        if first[name] != second[name]
    )
    if differing:
        raise ValueError(f"The measurement is of other parameters than the route: {differing}")
    return {name: measurement[name] for name in ("command", "commit", "runs")}
