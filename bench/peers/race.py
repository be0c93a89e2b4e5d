# SPDX-License-Identifier: Apache-2.0
"""Let several ways to one answer take turns, and compare their answers and their times."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
import os
from pathlib import Path
from statistics import median
import time

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["Race", "Way", "race"]

#: Writes the answer to a Parquet file.
Way = Callable[[Path], None]


@dataclass(frozen=True)
class Race:
    """Seconds of every way in every turn.

    Parameters
    ----------
    rows : int
        Rows of the answer.
    wall, processor : dict of str to list of float
        Seconds by the clock, and seconds of all threads of the way's process, by the way's name.
    """

    rows: int
    wall: dict[str, list[float]]
    processor: dict[str, list[float]]

    def ratio(self, seconds, one, other):
        """Return the median, the least and the greatest ratio of one way's seconds to another's.

        A machine changes its speed from minute to minute, so only seconds of one turn are compared.
        """
        ratios = [a / b for a, b in zip(seconds[one], seconds[other], strict=True)]
        return median(ratios), min(ratios), max(ratios)

    def notes(self, one, other):
        """Return what is printed below a figure that compares two ways."""
        for what, seconds in (("by the clock", self.wall), ("processor time", self.processor)):
            middle, least, most = self.ratio(seconds, one, other)
            yield (
                f"{what}: {one} {median(seconds[one]):.2f} s, {other} "
                f"{median(seconds[other]):.2f} s; ratio {middle:.2f} ({least:.2f} to {most:.2f})"
            )


def race(ways, folder, *, turns, key, beside=None):
    """Run every way once to compare the answers, then in turn to take the time.

    Each way has a process for all its turns. In one process they would change each other's time:
    DuckDB returns the memory of all of them to the system when it ends a query, so that the next
    one pays for 10,000 pages, and threads of peers go on for a while. A turn ends when its answer
    is on the disk.

    Parameters
    ----------
    ways : dict of str to Way
        The ways, by name; functions that can be pickled.
    folder : Path
        Where the answers are written.
    turns : int
        Timed turns.
    key : list of str
        Columns that tell the rows of an answer apart.
    beside : dict of str to callable, optional
        What takes its turns as well, and has no answer.

    Raises
    ------
    AssertionError
        If two answers differ in a row or a column.
    """
    runs = {name: partial(_kept, way, folder / f"{name}.parquet") for name, way in ways.items()}
    runs.update(beside or {})
    wall, processor = ({name: [] for name in runs} for _ in range(2))
    with ExitStack() as stack:
        processes = {
            name: stack.enter_context(ProcessPoolExecutor(1, get_context("spawn"))) for name in runs
        }
        for name, run in runs.items():
            processes[name].submit(run).result()
        answers = {name: _answer(folder / f"{name}.parquet", key) for name in ways}
        first, *rest = answers
        for name in rest:
            if not answers[name].equals(answers[first]):
                raise AssertionError(
                    f"{name} has {answers[name].num_rows} rows and {first} "
                    f"{answers[first].num_rows}, or other values"
                )
        for _ in range(turns):
            for name, run in runs.items():
                seconds = processes[name].submit(_timed, run).result()
                wall[name].append(seconds[0])
                processor[name].append(seconds[1])
    return Race(answers[first].num_rows, wall, processor)


def _kept(way, path):
    """Write an answer, until it is on the disk: some ways see to it themselves, others do not."""
    way(path)
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _timed(run):
    """Return the seconds by the clock, and of this process, that a call takes."""
    begun = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - begun[0], time.process_time() - begun[1]


def _answer(path, key):
    """Return the rows of an answer in an order that all share, as columns that may be null."""
    table = pq.read_table(path).sort_by([(name, "ascending") for name in key])
    return pa.table(dict(zip(table.column_names, table.columns, strict=True)))
