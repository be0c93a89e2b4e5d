# SPDX-License-Identifier: Apache-2.0
"""Measure points that are not in the store yet, accelerator by accelerator."""

from pathlib import Path

from .accelerators import prepare
from .measurement import measure
from .store import Store

__all__ = ["FOLDER", "sweep"]

#: Where bundles and measured points are.
FOLDER = Path("build") / "experiments"


def sweep(
    points, report, *, folder=FOLDER, prepared=prepare, advance=lambda done, of: None,
    measured=measure, store="points.jsonl",
):  # fmt: skip
    """Return what was measured at each point, by point.

    Parameters
    ----------
    points : iterable of Point
        Points; equal ones are measured once.
    report : callable
        Receives lines about the progress.
    folder : Path
        Where bundles and the store are.
    prepared : callable
        Makes the bundle of an accelerator, as :func:`sim.experiments.accelerators.prepare`.
    advance : callable
        Called with the number of points that are done, and that there are.
    measured : callable
        Returns what is measured at a point, from the manifest of its accelerator and the point.
    store : str
        Name of the store's file.
    """
    points = list(dict.fromkeys(points))
    manifests = {}

    def manifest_of(point):
        name = point.accelerator
        if name not in manifests:
            manifests[name] = prepared(name, folder / "bundles", report)
        return manifests[name]

    return Store(folder / store).fill(
        sorted(points, key=lambda point: point.accelerator),
        lambda point: manifest_of(point).hash,
        lambda point: measured(manifest_of(point), point),
        advance,
    )
