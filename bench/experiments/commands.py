# SPDX-License-Identifier: Apache-2.0
"""The command ``python -m bench experiments``: measure, write CSV files, draw."""

from concurrent.futures import ProcessPoolExecutor
import csv
from multiprocessing import get_context
from pathlib import Path
import shlex

from host.cli.command import Status
from host.drawing import figure
from host.installation import processors

from .catalogue import plots
from .elastic import elastic_plots
from .sweep import FOLDER, Ahead, prepare, sweep
from .texts import text_plots

__all__ = ["add_command", "all_plots", "draw", "write"]


def draw(plot, found):
    """Return a figure as SVG, from what was measured at each of its points."""
    return figure(
        plot.lines(found), title=plot.title, x_label=plot.x_label, y_label=plot.y_label,
        conditions=plot.conditions, log=(plot.log_x, plot.log_y),
    )  # fmt: skip


def write(plot, found, folder, command):
    """Write the CSV file and the drawing of a figure.

    Parameters
    ----------
    plot : Plot, ElasticPlot or TextPlot
        The figure.
    found : dict
        What was measured at each point.
    folder : Path
        Where the two files go.
    command : str
        What measures it again, for the first line of the CSV file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"figure-{plot.name}"
    with (folder / f"{stem}.csv").open("w", newline="", encoding="utf-8") as file:
        file.write(f"# {command}\n# {plot.conditions}\n")
        csv.writer(file, lineterminator="\n").writerows(plot.table(found))
    (folder / f"{stem}.svg").write_text(draw(plot, found), encoding="utf-8")


def all_plots(*, quick=False):
    """Return all figures by name."""
    return plots(quick=quick) | elastic_plots(quick=quick) | text_plots(quick=quick)


def quiet(text):
    """Say nothing of a library that is built: the status line counts points."""
    del text


def run(options):
    """Measure the points of the figures that are not known yet, and draw the figures."""
    known = all_plots(quick=options.quick)
    names = options.figure or list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"Figure must be one of {', '.join(known)}, not {unknown[0]!r}")
    output = Path(options.output or (FOLDER / "quick" if options.quick else FOLDER / "figures"))
    # Processes make accelerators of later figures while the first ones are measured. Half of the
    # work is Python's: in a thread, it would keep the measurements waiting.
    makers = ProcessPoolExecutor(processors(), mp_context=get_context("spawn"))
    with Ahead(prepare, makers) as prepared:
        for name in names:
            for point in sorted(known[name].points, key=lambda point: point.accelerator):
                prepared.announce(point.accelerator, point.parameters, FOLDER / "bundles", quiet)
        for name in names:
            command = ["python", "-m", "bench", "experiments", "--figure", name]
            command += ["--quick"] if options.quick else []
            plot = known[name]
            said = ["0"]
            with Status(f"experiments: figure {name}") as status:
                with status.stage("measuring", lambda said=said: said[-1]):
                    found = sweep(
                        plot.points, quiet, prepared=prepared,
                        advance=lambda done, of, said=said: said.append(f"{done} of {of} points"),
                    )  # fmt: skip
            write(plot, found, output, shlex.join(command))
            print(output / f"figure-{name}.svg", flush=True)
    return 0


def add_command(commands):
    """Add ``experiments`` to the commands of ``python -m bench``."""
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
        help=f"one of {', '.join(all_plots())}; repeatable",
    )
    command.add_argument("--output", metavar="DIR", help=f"default: {FOLDER / 'figures'}")
    command.set_defaults(run=run)
