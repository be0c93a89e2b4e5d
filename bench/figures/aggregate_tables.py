# SPDX-License-Identifier: Apache-2.0
"""How fast tables are aggregated on a simulated accelerator, from Arrow to Arrow."""

from dataclasses import replace
import statistics
import time

import pyarrow as pa

from hdl.aggregate.aggregate_parameters import AGGREGATE_PRESETS
from host.pipeline import Pipeline
from host.query.queries import AggregateQuery

from .aggregate import PANE_TUPLES, PRESET, aggregate_bundle, random_columns
from .calibration import calibrated
from .instructions import Instructions
from .registry import figure

__all__ = ["TimedTable"]

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
        self.device = f"sim:{aggregate_bundle(parameters, report)}"
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
        self.results, self.cycles = result.num_rows, stream.cycles
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
