# SPDX-License-Identifier: Apache-2.0
"""Figures of the host: the runtime's share of a join, memory, copies, and what pipelines save.

Those of pipelines are ratios of CPU times that were taken in turns in one run, beside plain PyArrow
or without a flag; one is a ratio of peak memory.
"""

from contextlib import closing
import statistics
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.simulated import FOLDER, built
from host import Ordering, open_device
from host.devices import Device
from host.pipeline import Pipeline
from host.query.queries import Query
from host.runtime import Buffer, Quantum, Scheduler

from .registry import figure
from .saturated import EQUI, PERIOD, WINDOW

__all__ = ["QUERY", "ROWS"]

#: An equality over a count-based window, with one match per probe.
QUERY = Query(
    on="x", time="t", rows=WINDOW,
    ordering=Ordering(PERIOD), sorted=True,
)  # fmt: skip


def device(report) -> Device:
    """Open the simulated index accelerator of one core."""
    return open_device(f"sim:{built(EQUI, 'host-equality', report)}")


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
from bench.figures.host import QUERY
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


# Pipelines.

#: Number of rows in the tables of most figures.
ROWS = 10_000_000
#: Number of rows in each batch.
BATCH = 1 << 16


def ratio(first, second, report, turns=7):
    """Return the CPU time of ``first`` relative to ``second``: the median of several turns."""
    ratios = []
    for _ in range(turns):
        seconds = []
        for function in (first, second):
            start = time.process_time()
            function()
            seconds.append(time.process_time() - start)
        ratios.append(seconds[0] / seconds[1])
        report(f"figures: {seconds[0]:.4f} s against {seconds[1]:.4f} s")
    return statistics.median(ratios)


def numbers(rows=ROWS, **options):
    """Return a pipeline over two columns: ``x`` ascends, ``k`` is random."""
    generator = np.random.default_rng(1)
    table = pa.table({"x": np.arange(rows), "k": generator.integers(0, 1000, rows)})
    return Pipeline.of_table(table, **options)


@figure("pipeline.map_filter.times_pyarrow", unit="times", goal="< 1.2")
def map_filter_times_pyarrow(report):
    """CPU time of map, filter, collect on 10**7 int64 rows in batches, relative to PyArrow."""
    generator = np.random.default_rng(1)
    batches = [
        pa.record_batch({"x": generator.integers(0, 1000, BATCH)}) for _ in range(ROWS // BATCH)
    ]

    def with_pipeline():
        return (
            Pipeline.of_batches(lambda: batches, batches[0].schema)
            .map("y", lambda x: pc.add(pc.multiply(x, 2), 1))
            .filter(lambda y: pc.less(y, 1000))
            .collect()
        )

    def with_pyarrow():
        kept = []
        for batch in batches:
            y = pc.add(pc.multiply(batch.column("x"), 2), 1)
            kept.append(batch.append_column("y", y).filter(pc.less(y, 1000)))
        return pa.Table.from_batches(kept)

    assert with_pipeline().equals(with_pyarrow())
    return ratio(with_pipeline, with_pyarrow, report, turns=15)


@figure("pipeline.fusing.saves", unit="times", goal=">= 1")
def fusing_saves(report):
    """CPU time of two filters, a map and a selection in four passes, relative to one fused pass."""
    pipeline = (
        numbers(1 << 21)
        .map("y", lambda x: pc.bit_wise_and(x, 7))
        .filter(lambda k: pc.less(k, 700))
        .filter(lambda y: pc.less(y, 6))
        .select("x")
    )
    return ratio(pipeline.fused(False).collect, pipeline.collect, report)


#: Memory pools, kept because a pool must outlive its arrays, which the garbage collector may free
#: late.
_pools = []


@figure("pipeline.sized.saves", unit="times", goal=">= 1")
def sized_saves(report):
    """Peak Arrow memory of ``to_arrays`` for rows of unknown number, relative to a known number.

    Rows of a known number are written into the result arrays as they arrive. Rows of an unknown
    number are collected until the last one has arrived.
    """
    pipeline = numbers().map("y", lambda x: pc.add(x, 1)).select("y")
    unsized = pipeline.filter(lambda y: pc.greater_equal(y, 0))
    peaks = []
    for each in (unsized, pipeline):
        pool = pa.proxy_memory_pool(pa.default_memory_pool())
        _pools.append(pool)
        pa.set_memory_pool(pool)
        try:
            each.to_arrays()
        finally:
            pa.set_memory_pool(pa.default_memory_pool())
        peaks.append(pool.max_memory())
        report(f"figures: {peaks[-1]:,} bytes")
    return peaks[0] / peaks[1]


@figure("pipeline.ordered.saves", unit="times", goal=">= 1")
def ordered_saves(report):
    """CPU time of ``distinct`` in encounter order, relative to ``distinct`` without an order."""
    pipeline = numbers(1 << 20).map("d", lambda x: pc.bit_wise_and(x, (1 << 19) - 1)).distinct("d")
    return ratio(pipeline.collect, pipeline.unordered().collect, report)


@figure("pipeline.sorted.saves", unit="times", goal=">= 1")
def sorted_saves(report):
    """CPU time of sorting sorted rows not flagged SORTED, relative to flagged ones."""
    unknown, known = numbers(1 << 21).sorted("x"), numbers(1 << 21, sorted_by=["x"]).sorted("x")
    return ratio(unknown.collect, known.collect, report)


@figure("pipeline.distinct.saves", unit="times", goal=">= 1")
def distinct_saves(report):
    """CPU time of ``distinct`` on distinct rows not flagged DISTINCT, relative to flagged ones."""
    unknown = numbers(1 << 20).distinct("x")
    known = numbers(1 << 20, distinct_by=["x"]).distinct("x")
    return ratio(unknown.collect, known.collect, report)


@figure("pipeline.short_circuit.saves", unit="times", goal=">= 1")
def short_circuit_saves(report):
    """CPU time of collecting all of 10**7 rows, relative to collecting the first 1,000."""
    pipeline = numbers().map("y", lambda x: pc.add(x, 1))

    def first():
        with closing(pipeline.limit(1000).batches()) as batches:
            return sum(batch.num_rows for batch in batches)

    assert first() == 1000
    return ratio(pipeline.collect, first, report)
