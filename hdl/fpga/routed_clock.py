# SPDX-License-Identifier: Apache-2.0
"""The clock that a preset, or its twin, reached when it was routed, for the manifest."""

import json

from hdl.presets import PRESETS, TWINS

from .devices import DEVICES, SPEEDS
from .provenance import ROOT
from .published import REPORTS, earlier_design

__all__ = ["routed_clock"]


def find_report(preset, root):
    """Return the path of a preset's routing report, relative to ``root``; None without one.

    Of several, it is that of the largest device, at its fastest speed grade.
    """
    for device in reversed(DEVICES):
        for speed in reversed(SPEEDS):
            path = REPORTS / f"{preset}-{device}-grade{speed}.json"
            if (root / path).is_file():
                return path
    return None


def routed_clock(parameters, *, root=ROOT):
    """Return what the manifest of an accelerator says of its clock on a device.

    To tell whether the report is of today's design, this generates the design that was routed,
    which takes seconds for a full chip.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    root : Path
        Of the checkout, which has the routing reports.

    Returns
    -------
    dict or None
        None unless the parameters are those of a preset, and there is a report of this preset, or
        of its twin. Otherwise:

        - ``preset``: the one that was routed; ``twin``: whether it stands for another one;
        - ``capacity``: how many tuples of a side it holds;
        - ``device``, ``speed``: on what, and its speed grade;
        - ``mhz``: of the slowest seed;
        - ``report``: where the report is in the checkout;
        - ``earlier_design``: None if it is of today's design, else which one it is of.
    """
    name = next((name for name, preset in PRESETS.items() if preset == parameters), None)
    routed = TWINS.get(name, name)
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
