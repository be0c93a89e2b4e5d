# SPDX-License-Identifier: Apache-2.0
"""The command ``python -m bench epochs``."""

import csv
from itertools import product
from pathlib import Path
import shlex

from bench.experiments.accelerators import prepare
from bench.experiments.sweep import FOLDER, sweep

from .loads import ENGINES, WINDOWS
from .stretches import WITHHELD, measure_stretch, stretches

__all__ = ["COLUMNS", "add_command", "rows_of", "write"]

#: Columns of the table, which are summed over the stretches of a kind.
COLUMNS = (
    "tuples", "epochs", "superseded", "pairs", "bad",
    "cycles_with", "cycles_without", "stalled_with", "stalled_without",
)  # fmt: skip


def rows_of(found):
    """Return a row for each accelerator and window, and one for all: what was counted, summed."""
    rows = {}
    for stretch, counts in found.items():
        for kind in ((stretch.accelerator, stretch.window), ("all", "all")):
            row = rows.setdefault(kind, dict.fromkeys(("stretches", *COLUMNS), 0))
            row["stretches"] += 1
            for name in COLUMNS:
                row[name] += counts.get(name, stretch.tuples)
    return dict(sorted(rows.items(), key=lambda row: row[0][0] == "all"))


def write(rows, path, command):
    """Write the rows as a CSV file, below the command and the conditions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(f"# {command}\n# A word comes in {256 / (256 - WITHHELD):.2g} cycles.\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["accelerator", "window", "stretches", *COLUMNS])
        for kind, row in rows.items():
            writer.writerow([*kind, *row.values()])


def run(options, report):
    """Measure the stretches that are not known yet; return 1 if a pair is bad or an epoch stalls.

    An epoch stalls if the input of any stretch waits longer with epochs than without.
    """
    chosen = stretches(
        list(product(ENGINES, WINDOWS)), tuples=options.tuples, length=options.stretch,
        distance=options.distance, seed=options.seed,
    )  # fmt: skip
    found = sweep(
        chosen, report, folder=FOLDER, measured=measure_stretch, store="epochs.jsonl",
        prepared=lambda name, folder, said: prepare(name, folder / "epochs", said, ENGINES),
        advance=lambda done, of: report(f"epochs: {done} of {of} stretches"),
    )  # fmt: skip
    rows = rows_of(found)
    write(rows, Path(options.output), shlex.join(["python", "-m", "bench", *options.arguments]))
    total = rows["all", "all"]
    print(
        f"{total['tuples']:,} tuples, {total['epochs']:,} epochs: the input waited for "
        f"{total['stalled_with']:,} cycles with epochs and {total['stalled_without']:,} without; "
        f"{total['pairs']:,} pairs, {total['bad']:,} bad"
    )
    waits = any(one["stalled_with"] > one["stalled_without"] for one in found.values())
    return int(waits or total["bad"] > 0)


def add_command(commands, report):
    """Add ``epochs`` to the commands of ``python -m bench``; ``report`` receives its progress."""
    command = commands.add_parser(
        "epochs", help="run joins with an epoch every so many tuples, and count stalls",
        description="Run joins on simulated accelerators with an epoch every so many tuples, count "
        "the cycles in which their input waits, and compare every pair with the reference join. "
        f"A stretch that was simulated before is not simulated again ({FOLDER}).",
        example="--tuples 1000000",
    )  # fmt: skip
    command.add_argument(
        "--tuples", type=int, default=10_000_000, metavar="N", help="default: 10,000,000"
    )
    command.add_argument(
        "--stretch", type=int, default=1_250_000, metavar="N",
        help="tuples that are simulated from reset on, and kept; default: 1,250,000",
    )  # fmt: skip
    command.add_argument(
        "--distance", type=int, default=1_000, metavar="N",
        help="tuples from epoch to epoch; default: 1,000",
    )  # fmt: skip
    command.add_argument("--seed", type=int, default=1, metavar="S", help="default: 1")
    command.add_argument(
        "--output", default=str(FOLDER / "epochs.csv"), metavar="FILE",
        help=f"default: {FOLDER / 'epochs.csv'}",
    )  # fmt: skip
    command.set_defaults(run=lambda options: run(options, report))
