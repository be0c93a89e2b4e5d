# SPDX-License-Identifier: Apache-2.0
"""Figures of the host runtime in a join: its share of the time, its memory, and its copies."""

from contextlib import closing
from pathlib import Path
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hdl.bundle import write_bundle
from host import Ordering, open_device
from host.devices import Device
from host.pipeline import Pipeline
from host.query.queries import Query
from host.runtime import Buffer, Quantum, Scheduler
from sim.verilated.library import build_library

from .index import EQUI
from .registry import figure
from .timed_join import PERIOD, WINDOW

__all__ = ["QUERY"]

FOLDER = Path("build") / "figures"
#: An equality over a count-based window, with one match per probe.
QUERY = Query(
    on="x", time="t", rows=WINDOW,
    ordering=Ordering(PERIOD), sorted=True,
)  # fmt: skip


def device(report) -> Device:
    """Open the simulated index accelerator of one core."""
    bundle = FOLDER / "host-equality"
    write_bundle(EQUI, bundle)
    build_library(bundle, report=report)
    return open_device(f"sim:{bundle}")


def side(rows, number):
    """Return random rows of one side, sorted by ``t``."""
    generator = np.random.default_rng(number)
    return pa.table(
        {
            "t": np.arange(rows, dtype=np.int64) * 2 + number,
            "x": generator.integers(0, WINDOW, rows, dtype=np.int32),
        }
    )


class Clock:
    """Sums the time spent in the functions that it wraps; nested calls count once."""

    def __init__(self):
        self.seconds = 0.0
        self._inside = False

    def wrap(self, function):
        def timed(*arguments, **options):
            if self._inside:
                return function(*arguments, **options)
            self._inside = True
            start = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                self.seconds += time.perf_counter() - start
                self._inside = False

        return timed


@figure("host.runtime.share", unit="of 1", goal="< 0.02")
def runtime_share(report):
    """Share of a join's time that is spent in the scheduler and in buffers, not in streams.

    The join has 2 * 2**20 rows and runs from Arrow to Arrow through the simulator library.
    """
    sides = [Pipeline.of_table(side(1 << 20, number), sorted_by=["t"]) for number in range(2)]
    streams, buffers = Clock(), Clock()
    originals = {name: getattr(Buffer, name) for name in ("provide", "produce", "demand", "access",
                                                          "consume")}  # fmt: skip
    with device(report) as opened:
        graph = sides[0].join(sides[1], QUERY, opened).execution().graph()
        for stream in graph.streams:
            stream.execute = streams.wrap(stream.execute)
        try:
            for name, method in originals.items():
                setattr(Buffer, name, buffers.wrap(method))
            start = time.perf_counter()
            with closing(Scheduler(graph, Quantum()).read()) as batches:
                rows = sum(batch.num_rows for batch in batches)
            total = time.perf_counter() - start
        finally:
            for name, method in originals.items():
                setattr(Buffer, name, method)
    own = total - streams.seconds + buffers.seconds
    report(f"figures: {rows:,} results in {total:.2f} s; scheduler and buffers {own:.4f} s")
    return own / total


_STREAMED = """
import re, sys
from pathlib import Path

def peak():
    return int(re.search("VmHWM:(.*) kB", Path("/proc/self/status").read_text())[1])

least = peak()
from host import open_device
from host.pipeline import Pipeline
from bench.figures.host_runtime import QUERY
bundle, left, right, output = sys.argv[1:]
with open_device(f"sim:{bundle}") as device:
    sides = [Pipeline.of_parquet(path, sorted_by=["t"]) for path in (left, right)]
    rows = sides[0].join(sides[1], QUERY, device).write(output)
print(rows, (peak() - least) / 1000)
"""


@figure("host.join.peak_mb", unit="MB", goal="< 300")
def join_peak(report):
    """Peak memory of a join of 10**7 rows, above that of an interpreter without the kit.

    The join streams two Parquet files of 5 * 10**6 rows each through the simulator library into a
    third file.
    """
    device(report).close()
    paths = [FOLDER / f"host-{number}.parquet" for number in range(2)]
    for number, path in enumerate(paths):
        pq.write_table(side(5_000_000, number), path, row_group_size=1 << 17)
    arguments = [FOLDER / "host-equality", *paths, FOLDER / "host-joined.parquet"]
    command = [sys.executable, "-c", _STREAMED, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows, peak = done.stdout.split()
    report(f"figures: {int(rows):,} results")
    return float(peak)


@figure("host.staging.copies", unit="a batch", goal="< 1.01")
def staging_copies(report):
    """Number of times that an Arrow batch is written on its way into a device's input words.

    The number is counted. The time to copy the same number of bytes is reported for comparison.
    """
    prepared = []
    tables = [side(1 << 20, number) for number in range(2)]
    sides = [Pipeline.of_table(table, sorted_by=["t"]) for table in tables]
    with device(report) as opened:
        sides[0].join(sides[1], QUERY, opened, started=prepared.append).count()
    staged = prepared[-1].accelerator.staged
    source = np.zeros(staged.staged_bytes, np.uint8)
    start = time.perf_counter()
    source.copy()
    seconds = time.perf_counter() - start
    report(
        f"figures: {staged.batches} batches, {staged.rows:,} rows, {staged.staged_bytes:,} bytes "
        f"staged; copying as many takes {seconds:.4f} s"
    )
    return (staged.batches + staged.copied_batches) / staged.batches
