# SPDX-License-Identifier: Apache-2.0
"""Figures of elastic joins over time: the rate of the input, and the cores in force."""

import csv
from dataclasses import dataclass

from host.session.records import corners

from .accelerators import prepare
from .elastic_run import CONTROLLERS, CORES, ElasticPoint, measure_elastic
from .figure import draw
from .sweep import FOLDER, sweep

__all__ = ["ElasticPlot", "elastic_plots", "sweep_elastic", "write_elastic"]


@dataclass(frozen=True)
class ElasticPlot:
    """A figure over time; drawn like a :class:`~bench.experiments.figure.Plot`.

    Parameters
    ----------
    name, title, conditions : str
        Name and texts.
    points : tuple of ElasticPoint
        One for each controller.
    """

    name: str
    title: str
    conditions: str
    points: tuple[ElasticPoint, ...]

    x_label = "seconds"
    y_label = "cores"
    log_x = log_y = False

    def lines(self, found):
        """Return label and (second, cores) of each series; the rate is in parts of all cores."""
        rate = found[self.points[0]]["rate"]
        end = self.points[0].seconds
        scaled = [[second, share * CORES / 100] for second, share in rate]
        series = [("rate (8,000 = 8)", scaled)]
        series += [
            (point.controller, found[point]["cores"])
            for point in self.points if point.controller != "fixed"
        ]  # fmt: skip
        return [(label, corners(points, end)) for label, points in series]


def elastic_plots(*, quick=False):
    """Return the figures by name; the quick ones have smaller windows and take a quarter."""
    size = {"tuples": 256, "seconds": 300} if quick else {}
    titles = {
        "q5": "Phases of rates (Q5 of STRETCH): rate and active cores",
        "market": "A load in the shape of a market's (Q6 of STRETCH): rate and active cores",
        "hedge": "Hedges in a load of that shape (Q6 of STRETCH): rate and active cores",
    }
    return {
        f"elastic-{load}": ElasticPlot(
            f"elastic-{load}", title,
            f"{CORES} cores, time-based window, band of two fields; all cores have a load of 75 % "
            f"at 8,000 tuples per second.",
            tuple(ElasticPoint(load, controller, **size) for controller in CONTROLLERS),
        )
        for load, title in titles.items()
    }  # fmt: skip


def sweep_elastic(
    points, report, *, folder=FOLDER, prepared=prepare, advance=lambda done, of: None
):
    """Return what was measured at each point; what is in the store is not measured again."""
    return sweep(
        points, report, folder=folder, prepared=prepared, advance=advance,
        measured=measure_elastic, store="elastic.jsonl",
    )  # fmt: skip


def write_elastic(plot, found, folder, command):
    """Write the CSV file and the drawing of a figure."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"figure-{plot.name}"
    with (folder / f"{stem}.csv").open("w", newline="", encoding="utf-8") as file:
        file.write(f"# {command}\n# {plot.conditions}\n")
        writer = csv.writer(file, lineterminator="\n")
        counts = (
            "saved",
            "longest_seconds",
            "longest",
            "changes",
            "cycles",
            "core_cycles",
            "pairs",
        )
        writer.writerow(["controller", *counts])
        for point in plot.points:
            row = [found[point][name] for name in counts]
            writer.writerow(
                [point.controller, *(f"{v:.4g}" if isinstance(v, float) else v for v in row)]
            )
        writer.writerow([])
        writer.writerow(["series", "second", "value"])
        writer.writerows(
            [label, f"{x:.6g}", f"{y:.6g}"] for label, line in plot.lines(found) for x, y in line
        )
    (folder / f"{stem}.svg").write_text(draw(plot, found), encoding="utf-8")
