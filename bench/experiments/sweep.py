# SPDX-License-Identifier: Apache-2.0
"""Measure points that are not in the store yet, accelerator by accelerator."""

from pathlib import Path

from host.installation import processors

from .accelerators import prepare
from .ahead import Ahead
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
        Makes the bundle of an accelerator, as :func:`bench.experiments.accelerators.prepare`.
    advance : callable
        Called with the number of points that are done, and that there are.
    measured : callable
        Returns what is measured at a point, from the manifest of its accelerator and the point.
    store : str
        Name of the store's file.
    """
    points = sorted(dict.fromkeys(points), key=lambda point: point.accelerator)
    # While one accelerator is measured, the next one is made; most of that is compiling. Points are
    # counted in cycles, which do not depend on what else the processors do.
    with Ahead(prepared) as made:

        def manifest_of(point):
            return made(point.accelerator, folder / "bundles", report)

        for point in points:
            made.announce(point.accelerator, folder / "bundles", report)
        return Store(folder / store).fill(
            points,
            lambda point: manifest_of(point).hash,
            lambda point: measured(manifest_of(point), point),
            advance,
            workers=processors(),
        )
