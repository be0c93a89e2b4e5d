# SPDX-License-Identifier: Apache-2.0
"""The command ``python -m bench experiments``: measure, write CSV files, draw."""

from concurrent.futures import ProcessPoolExecutor
import csv
from dataclasses import asdict, fields
from functools import partial
from multiprocessing import get_context
from pathlib import Path
import shlex

from host.cli.command import Status
from host.installation import processors

from .accelerators import ACCELERATORS, prepare
from .ahead import Ahead
from .catalogue import plots
from .elastic_figures import elastic_plots, sweep_elastic, write_elastic
from .figure import QUANTITIES, draw
from .point import Point
from .sweep import FOLDER, sweep
from .text_figures import sweep_texts, text_accelerators, text_plots, write_texts

__all__ = ["add_command", "write"]


def write(plot, found, folder, command):
    """Write the CSV file and the drawing of a figure.

    Parameters
    ----------
    plot : Plot
        The figure.
    found : dict
        What was measured at each point.
    folder : Path
        Where the two files go.
    command : str
        What measures it again, for the first line of the CSV file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    measured = list(dict.fromkeys(name for point in plot.points for name in found[point]))
    stem = f"figure-{plot.name}"
    with (folder / f"{stem}.csv").open("w", newline="", encoding="utf-8") as file:
        file.write(f"# {command}\n# {plot.conditions}\n")
        writer = csv.writer(file, lineterminator="\n")
        names = [field.name for field in fields(Point)]
        writer.writerow(["series", "quantity", "x", "y", *names, *measured])
        for series in plot.series:
            for x, point in series.points:
                row, y = found[point], QUANTITIES[series.quantity](point, found[point])
                values = [row.get(name) for name in measured]
                numbers = [f"{v:.6g}" if isinstance(v, float) else v for v in (x, y, *values)]
                writer.writerow([series.label, series.quantity, *numbers[:2],
                                 *asdict(point).values(), *numbers[2:]])  # fmt: skip
    (folder / f"{stem}.svg").write_text(draw(plot, found), encoding="utf-8")


def join_accelerators(points):
    """Return the parameters of the accelerators of some points, by name."""
    return {point.accelerator: ACCELERATORS[point.accelerator] for point in points}


#: Figures, the accelerators of their points, what measures these, and what writes them.
FAMILIES = (
    (plots, join_accelerators, sweep, write),
    (elastic_plots, join_accelerators, sweep_elastic, write_elastic),
    (text_plots, text_accelerators, sweep_texts, write_texts),
)


def quiet(text):
    """Say nothing of a library that is built: the status line counts points."""
    del text


def run(options):
    """Measure the points of the figures that are not known yet, and draw the figures."""
    chosen = {
        name: (plot, accelerators, measure, put)
        for family, accelerators, measure, put in FAMILIES
        for name, plot in family(quick=options.quick).items()
    }
    names = options.figure or list(chosen)
    unknown = [name for name in names if name not in chosen]
    if unknown:
        raise ValueError(f"Figure must be one of {', '.join(chosen)}, not {unknown[0]!r}")
    output = Path(options.output or (FOLDER / "quick" if options.quick else FOLDER / "figures"))
    used = {}
    for name in names:
        plot, accelerators, *_ = chosen[name]
        used |= dict(sorted(accelerators(plot.points).items()))
    # Processes make accelerators of later figures while the first ones are measured. Half of the
    # work is Python's: in a thread, it would keep the measurements waiting.
    makers = ProcessPoolExecutor(processors(), mp_context=get_context("spawn"))
    with Ahead(partial(prepare, accelerators=used), makers) as prepared:
        for name in used:
            prepared.announce(name, FOLDER / "bundles", quiet)
        for name in names:
            command = ["python", "-m", "bench", "experiments", "--figure", name]
            command += ["--quick"] if options.quick else []
            plot, _, measure, put = chosen[name]
            said = ["0"]
            with Status(f"experiments: figure {name}") as status:
                with status.stage("measuring", lambda said=said: said[-1]):
                    found = measure(
                        plot.points, quiet, folder=FOLDER, prepared=prepared,
                        advance=lambda done, of, said=said: said.append(f"{done} of {of} points"),
                    )  # fmt: skip
            put(plot, found, output, shlex.join(command))
            print(output / f"figure-{name}.svg", flush=True)
    return 0


def add_command(commands):
    """Add ``experiments`` to the commands of ``python -m sim``."""
    command = commands.add_parser(
        "experiments", help="measure and draw the figures of the paper's evaluation",
        description="Measure the figures of the paper's section 6 on simulated hardware, and draw "
        "them. Points that were measured before on the same circuit are not measured again.",
        example="--figure 12 --quick",
    )  # fmt: skip
    command.add_argument("--quick", action="store_true", help="up to 8 cores and fewer series")
    command.add_argument(
        "--figure",
        action="append",
        metavar="NAME",
        help=f"one of {', '.join(name for family, *_ in FAMILIES for name in family())}; "
        "repeatable",
    )
    command.add_argument("--output", metavar="DIR", help=f"default: {FOLDER / 'figures'}")
    command.set_defaults(run=run)
