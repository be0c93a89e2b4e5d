# SPDX-License-Identifier: Apache-2.0
"""The routing reports that the repository publishes, and whether each is of today's design."""

import json
from pathlib import Path

from hdl.parameters import JoinParameters
from hdl.presets import PRESETS

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

#: Where the reports are.
REPORTS = Path("docs") / "routing"
#: Presets whose report must be of today's design; they are routed in minutes. A full chip takes
#: hours, so its report may be of an earlier design, and then says so.
CURRENT = ("ecp5-index",)
#: Parameters that there were, with the values that every accelerator would have today.
GONE = {"pipelined": True}


def published(folder=REPORTS):
    """Return the reports in ``folder``, by the paths of their JSON files."""
    return {
        path: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(Path(folder).glob("*.json"))
    }


def routed_parameters(report):
    """Return what a report is of; None if it has parameters that are none of today's."""
    values = report["parameters"].items()
    try:
        return JoinParameters.from_dict(dict(item for item in values if item not in GONE.items()))
    except ValueError:
        return None


def earlier_design(report):
    """Return which earlier design a report is of; None if it is of today's.

    Parameters
    ----------
    report : dict
        Of :func:`hdl.fpga.route.route`.

    Returns
    -------
    str or None
        The commit that was routed if it is known, and the hash of the Verilog.
    """
    parameters = routed_parameters(report)
    preset = report["preset"]
    if parameters is not None and (preset is None or PRESETS.get(preset) == parameters):
        verilog = routed_verilog(parameters, find_device(report["device"]))
        if design_hash(verilog) == report["design"]:
            return None
    commit = report.get("commit")
    return (f"commit {commit}, " if commit else "") + f"Verilog {report['design'][:12]}"


def of_parameters(measurement, parameters):
    """Return what a report keeps of a measurement that ``python -m sim saturate`` wrote.

    Raises
    ------
    ValueError
        If it is of other parameters.
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
