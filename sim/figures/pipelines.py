# SPDX-License-Identifier: Apache-2.0
"""Figures of pipelines on the host: against plain PyArrow, and what each flag saves.

All are ratios of times that were taken side by side, in turns, in one run.
"""

from contextlib import closing
import statistics
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from host.pipeline import Pipeline

from .registry import figure

__all__ = ["ROWS"]

#: Rows of the tables that are measured with.
ROWS = 10_000_000
#: Of the batches that they are cut into.
BATCH = 1 << 16


def ratio(first, second, report, turns=7):
    """Return how many times as long ``first`` takes as ``second``: the median of several turns."""
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
    """A pipeline over two columns: ``x`` ascends, ``k`` is random."""
    generator = np.random.default_rng(1)
    table = pa.table({"x": np.arange(rows), "k": generator.integers(0, 1000, rows)})
    return Pipeline.of_table(table, **options)


@figure("pipeline.map_filter.times_pyarrow", unit="times", goal="< 1.2")
def map_filter_times_pyarrow(report):
    """CPU time of map, filter, collect on 10^7 int64 rows in batches, by that of PyArrow alone."""
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
    """Two filters, a map and a selection of columns in four passes, by the same in one."""
    pipeline = (
        numbers(1 << 21)
        .map("y", lambda x: pc.bit_wise_and(x, 7))
        .filter(lambda k: pc.less(k, 700))
        .filter(lambda y: pc.less(y, 6))
        .select("x")
    )
    return ratio(pipeline.fused(False).collect, pipeline.collect, report)


#: A pool must outlive the arrays in it, and when those go is the collector's decision.
_pools = []


@figure("pipeline.sized.saves", unit="times", goal=">= 1")
def sized_saves(report):
    """Peak memory of Arrow in ``to_arrays`` of rows of unknown number, by that of known number.

    Rows of known number are written into their arrays as they come; others wait for the last.
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
    """``distinct`` in the order of encounter, by ``distinct`` whose order nobody minds."""
    pipeline = numbers(1 << 20).map("d", lambda x: pc.bit_wise_and(x, (1 << 19) - 1)).distinct("d")
    return ratio(pipeline.collect, pipeline.unordered().collect, report)


@figure("pipeline.sorted.saves", unit="times", goal=">= 1")
def sorted_saves(report):
    """Sorting rows that are sorted, but not known to be, by sorting rows that are known to be."""
    unknown, known = numbers(1 << 21).sorted("x"), numbers(1 << 21, sorted_by=["x"]).sorted("x")
    return ratio(unknown.collect, known.collect, report)


@figure("pipeline.distinct.saves", unit="times", goal=">= 1")
def distinct_saves(report):
    """``distinct`` of rows that are distinct, but not known to be, by rows that are known to be."""
    unknown = numbers(1 << 20).distinct("x")
    known = numbers(1 << 20, distinct_by=["x"]).distinct("x")
    return ratio(unknown.collect, known.collect, report)


@figure("pipeline.short_circuit.saves", unit="times", goal=">= 1")
def short_circuit_saves(report):
    """All of 10^7 rows by the first 1,000 of them."""
    pipeline = numbers().map("y", lambda x: pc.add(x, 1))

    def first():
        with closing(pipeline.limit(1000).batches()) as batches:
            return sum(batch.num_rows for batch in batches)

    assert first() == 1000
    return ratio(pipeline.collect, first, report)
