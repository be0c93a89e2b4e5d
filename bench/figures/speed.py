# SPDX-License-Identifier: Apache-2.0
"""Figures of the speed of simulation: comparisons, joins and aggregates of tables, and builds."""

from contextlib import closing
from dataclasses import replace
import os
from pathlib import Path
import statistics
import tempfile
import time

import numpy as np
import pyarrow as pa

from bench.simulated import built
from hdl.aggregate.aggregate_parameters import AGGREGATE_PRESETS
from hdl.presets import PRESETS
from host import Ordering, open_device
from host.devices.simulated import SimulatedDevice
from host.pipeline import Pipeline
from host.query.queries import AggregateQuery, Query
from host.session.join import Join
from sim.benches.saturated_run import RARE, SaturatedRun

from .aggregates import PANE_TUPLES, PRESET, random_columns
from .calibration import Instructions, calibrated
from .registry import figure
from .saturated import BAND, EQUI, PERIOD, SCAN, WINDOW

__all__ = ["TimedTable"]

#: Tuples of both sides in one join of tables.
TUPLES = 1 << 21


def sim_rate(parameters, report):
    """Return comparisons per second of CPU time: the median of five runs, calibrated."""
    with closing(SaturatedRun(parameters, report)) as run:
        run.bound(RARE)

        def measure():
            with Instructions() as executed:
                seconds, counts = run.measure(50 * parameters.engine.probes)
            return counts["comparisons"], seconds, executed.count

        return calibrated(measure, runs=5, parts=10, rate=True, report=report)


@figure("scan.sim_comparisons_per_s", unit="comparisons/s", goal=">= 2e8")
def sim_comparisons_per_s(report):
    """Comparisons that the simulator library makes per second of CPU time.

    The accelerator has 16 cores, 4 lanes and 8 probes; windows are full. The simulation has one
    thread. The figure is the median of five runs.
    """
    return sim_rate(SCAN.with_(sub_window=2000, lanes=4, probes=8), report)


@figure("scan.sim_comparisons_per_s_one_lane", unit="comparisons/s", goal=">= 1.5e7")
def sim_comparisons_per_s_one_lane(report):
    """Comparisons per second of CPU time, as above, with one lane and windows of 8,000 tuples."""
    return sim_rate(SCAN.with_(sub_window=500, probes=8), report)


@figure("scan.model_build_s_64", unit="s", goal="< 90")
def model_build_s_64(report):
    """Wall-clock seconds from parameters to a loaded library of 64 cores, with an empty cache."""
    return calibrated(
        lambda: (1, cold_build(report), None), runs=1, parts=1, rate=False, wall=True, report=report
    )


def cold_build(report):
    """Return the seconds to generate and build the accelerator of 64 cores with an empty cache."""
    before = os.environ.get("SPLITJOIN_CACHE")
    with tempfile.TemporaryDirectory(prefix="splitjoin-") as folder:
        os.environ["SPLITJOIN_CACHE"] = str(Path(folder) / "cache")
        try:
            start = time.perf_counter()
            shape = PRESETS["paper"].with_(cores=64)
            bundle = built(shape, "bundle", report, folder=Path(folder))
            SimulatedDevice(bundle).close()
            return time.perf_counter() - start
        finally:
            if before is None:
                del os.environ["SPLITJOIN_CACHE"]
            else:
                os.environ["SPLITJOIN_CACHE"] = before


def uniform_join(bounds, values):
    """Return a function that joins two tables of uniform keys on a device.

    Parameters
    ----------
    bounds : dict of str to int
        Compared fields, and the largest difference in either direction.
    values : int
        Number of different values in every field.

    Returns
    -------
    function
        Takes a device; returns wall-clock seconds, seconds spent in the device, and the number of
        results.
    """
    generator = np.random.default_rng(1)
    rows = TUPLES // 2
    tables = [
        pa.table(
            {
                "t": np.arange(rows, dtype=np.int64) * 2 + side,
                **{name: generator.integers(0, values, rows, dtype=np.int32) for name in "xy"},
            }
        )
        for side in range(2)
    ]
    query = Query(
        band={name: (-bound, bound) for name, bound in bounds.items()},
        time="t", rows=WINDOW, ordering=Ordering(PERIOD), sorted=True,
    )  # fmt: skip

    def timed(device):
        start = time.perf_counter()
        join = Join(*tables, query, device)
        results = sum(batch.num_rows for batch in join.batches())
        return time.perf_counter() - start, join.measured.seconds, results

    return timed


def arrow_rate(parameters, bounds, values, report):
    """Return tuples per second from Arrow tables to Arrow batches, calibrated.

    The seconds are wall-clock time, because host and device work at the same time. The rate is the
    median of three runs of five joins.
    """
    bundle = built(parameters, f"arrow-{parameters.predicate.kind}", report)
    timed = uniform_join(bounds, values)

    def measure(device):
        with Instructions() as executed:
            seconds, busy, results = timed(device)
        report(
            f"figures: {TUPLES:,} tuples, {results:,} results in {seconds:.2f} s, "
            f"{busy:.2f} s of them in the device"
        )
        return TUPLES, seconds, executed.count

    with open_device(f"sim:{bundle}") as device:
        return calibrated(
            lambda: measure(device), runs=3, parts=5, rate=True, wall=True, report=report
        )


@figure("index.equi.sim_tuples_per_s", unit="tuples/s", goal=">= 5e6")
def equi_sim_tuples_per_s(report):
    """Tuples per second of wall-clock time, Arrow to Arrow through the simulator library."""
    return arrow_rate(EQUI, {"x": 0}, WINDOW, report)


@figure("index.band.sim_tuples_per_s", unit="tuples/s", goal=">= 2e6")
def band_sim_tuples_per_s(report):
    """Tuples per second, as above, for the paper's benchmark."""
    return arrow_rate(BAND, dict.fromkeys("xy", RARE), 10_000, report)


#: Panes of the table; runs that count, and turns of the device and the host in each of them.
PANES, RUNS, TURNS = 40, 3, 2


class TimedTable:
    """A table that the host and a simulated accelerator aggregate in turns.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator, whose operator is a sum by key.
    pane_tuples, panes : int
        Rows in a pane of the table, and panes.
    report : callable
        Receives lines about the progress of building the simulator library.

    Attributes
    ----------
    tuples, results, cycles : int
        Rows of the table and of the result, and cycles of the device in its last turn.
    host_seconds : list of float
        Wall-clock time of each turn of the host.
    """

    def __init__(self, parameters, *, pane_tuples, panes, report):
        self.device = f"sim:{built(parameters, 'aggregate', report)}"
        columns = random_columns(parameters, pane_tuples=pane_tuples, panes=panes)
        self.table = pa.table(columns)
        self.query = AggregateQuery(
            time="time",
            window=parameters.operator.size,
            advance=parameters.operator.advance,
            on=["key"],
            aggregates={"total": "sum:value"},
        )
        self.tuples = self.table.num_rows
        self.results = self.cycles = None
        self.host_seconds = []

    def aggregated(self, device):
        """Return the result by ``device`` (None: the host), the seconds it took, and the stream."""
        streams = []
        rows = Pipeline.of_table(self.table, sorted_by=["time"])
        pipeline = rows.aggregate(self.query, device=device, started=streams.append)
        began = time.monotonic()
        result = pipeline.collect()
        return result, time.monotonic() - began, streams[-1]

    def turn(self):
        """Aggregate once on either; return the device's tuples, seconds and instructions.

        Raises
        ------
        AssertionError
            If the two do not give the same table.
        """
        expected, seconds, _ = self.aggregated(None)
        self.host_seconds.append(seconds)
        with Instructions() as executed:
            result, seconds, stream = self.aggregated(self.device)
        if result != expected:
            raise AssertionError("the accelerator and the host give different tables")
        self.results, self.cycles = result.num_rows, stream.work.device_work.cycles
        return self.tuples, seconds, executed.count


@figure("aggregate.sim_tuples_per_s", unit="tuples/s", goal=">= 3e6")
def sim_tuples_per_s(report):
    """Tuples per second of wall-clock time on a simulated accelerator, from Arrow to Arrow.

    2^14 keys, a sliding window of 16 panes, one core; 2^16 rows in a pane, random keys and values,
    a table sorted by time. From the table to the table of all windows of all keys, which has to be
    that of the host in every turn.
    """
    timed = TimedTable(
        AGGREGATE_PRESETS[PRESET], pane_tuples=PANE_TUPLES, panes=PANES, report=report
    )
    rate = calibrated(timed.turn, runs=RUNS, parts=TURNS, rate=True, wall=True, report=report)
    alone = timed.tuples / statistics.median(timed.host_seconds)
    return replace(
        rate,
        notes=(
            *rate.notes,
            f"{timed.results} results of {timed.tuples} tuples, {timed.cycles} cycles",
            f"the host alone, as the machine was: {alone / 1e6:.2f} M tuples/s",
        ),
    )
