# SPDX-License-Identifier: Apache-2.0
"""Figures of elastic joins over time: the rate of the input, and the cores in force."""

import csv
from dataclasses import dataclass

from host.session.records import corners

from .accelerators import prepare
from .elastic_run import CONTROLLERS, CORES, ElasticPoint, accelerator_of, measure_elastic
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
    span : tuple of int, optional
        First and last second that are drawn.
    shows : tuple of str
        What is drawn besides of the threshold controller: its ``"answered"`` tuples.
    """

    name: str
    title: str
    conditions: str
    points: tuple[ElasticPoint, ...]
    span: tuple[int, int] | None = None
    shows: tuple[str, ...] = ()

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
            for point in self.points if point.controller not in ("fixed", "half")
        ]  # fmt: skip
        lines = [(label, corners(points, end)) for label, points in series]
        for point in self.points:
            if point.controller == "threshold" and "answered" in self.shows:
                shares = found[point]["answered"]
                lines.append(
                    ("answered (8,000 = 8)", [(at, share * CORES / 100) for at, share in shares])
                )
        if self.span is None:
            return lines
        return [(label, within(line, *self.span)) for label, line in lines]


def within(line, begin, end):
    """Return the part of a line of steps that lies between two seconds."""
    before = [y for x, y in line if x <= begin]
    inside = [(x, y) for x, y in line if begin < x < end]
    first = [(begin, before[-1])] if before else []
    last = inside[-1:] or first
    return [*first, *inside, *((end, y) for _, y in last)]


#: The jump of Q5's phases that STRETCH's Figure 12 would show, and the window after it.
JUMP = (740, 820)


def elastic_plots(*, quick=False):
    """Return the figures by name; the quick ones have smaller windows and take a quarter."""
    size = {"tuples": 256, "seconds": 300} if quick else {}
    titles = {
        "q5": "Phases of rates (Q5 of STRETCH): rate and active cores",
        "market": "A load in the shape of a market's (Q6 of STRETCH): rate and active cores",
        "hedge": "Hedges in a load of that shape (Q6 of STRETCH): rate and active cores",
    }
    conditions = (
        f"{CORES} cores, time-based window, one probe per pass; all cores have a load of 75 % at "
        f"8,000 tuples per second."
    )
    steps = {
        "provisioning": "One step up (Figure 10 of STRETCH): rate, active cores, answers",
        "decommissioning": "One step down (Figure 10 of STRETCH): rate, active cores, answers",
    }
    more = {
        f"elastic-{load}": ElasticPlot(
            f"elastic-{load}", title, conditions,
            tuple(
                ElasticPoint(load, controller, **{**size, "seconds": 300})
                for controller in ("half", "threshold")
            ),
            shows=("answered",),
        )
        for load, title in steps.items()
    } | {
        "elastic-jump": ElasticPlot(
            "elastic-jump", "The jump at second 748 of Q5 (Figure 12 of STRETCH)", conditions,
            tuple(
                ElasticPoint("q5", controller)
                for controller in ("fixed", "threshold", "predictive", "energy")
            ),
            JUMP,
        )
    }  # fmt: skip
    return ({} if quick else more) | {
        f"elastic-{load}": ElasticPlot(
            f"elastic-{load}", title, conditions,
            tuple(
                ElasticPoint(load, controller, accelerator=accelerator_of(load), **size)
                for controller in CONTROLLERS
            ),
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
        writer.writerow(["controller", *counts, "mean_latency_seconds"])
        for point in plot.points:
            seen = [latency for _, latency in found[point]["latency"]]
            row = [found[point][name] for name in counts]
            row.append(sum(seen) / len(seen) if seen else "")
            writer.writerow(
                [point.controller, *(f"{v:.4g}" if isinstance(v, float) else v for v in row)]
            )
        writer.writerow([])
        writer.writerow(["series", "second", "value"])
        writer.writerows(
            [label, f"{x:.6g}", f"{y:.6g}"] for label, line in plot.lines(found) for x, y in line
        )
    (folder / f"{stem}.svg").write_text(draw(plot, found), encoding="utf-8")
