# SPDX-License-Identifier: Apache-2.0
"""Measure points that are not in the store yet, accelerator by accelerator."""

from pathlib import Path

from .accelerators import prepare
from .measurement import measure
from .store import Store

__all__ = ["FOLDER", "sweep"]

#: Where bundles and measured points are.
FOLDER = Path("build") / "experiments"


def sweep(points, report, *, folder=FOLDER, prepared=prepare, advance=lambda done, of: None):
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
    """
    points = list(dict.fromkeys(points))
    store, found, manifests = Store(folder / "points.jsonl"), {}, {}
    for point in sorted(points, key=lambda point: point.accelerator):
        advance(len(found), len(points))
        name = point.accelerator
        if name not in manifests:
            manifests[name] = prepared(name, folder / "bundles", report)
        manifest = manifests[name]
        measured = store.get(manifest.hash, point)
        if measured is None:
            measured = measure(manifest, point)
            store.put(manifest.hash, point, measured)
        found[point] = measured
    advance(len(found), len(points))
    return found
