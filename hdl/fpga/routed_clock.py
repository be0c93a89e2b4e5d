# SPDX-License-Identifier: Apache-2.0
"""Routed clock of a preset, or of its twin, for the manifest."""

import importlib.metadata
import json
from pathlib import Path

from hdl.presets import PRESETS, TWINS

from .devices import DEVICES, SPEEDS
from .provenance import ROOT
from .published import REPORTS, earlier_design

__all__ = ["reports_root", "routed_clock"]

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
