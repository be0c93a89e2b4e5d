# SPDX-License-Identifier: Apache-2.0
"""Figures of pipelines on the host: comparison with plain PyArrow, and the savings of each flag.

All figures but one are ratios of CPU times that were taken in turns in one run; the other is a
ratio of peak memory.
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
