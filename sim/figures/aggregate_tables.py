# SPDX-License-Identifier: Apache-2.0
"""How fast tables are aggregated on a simulated accelerator, from Arrow to Arrow."""

import time

import pyarrow as pa

from hdl.aggregate.presets import AGGREGATE_PRESETS
from host.pipeline import Pipeline
from host.query.aggregate_query import AggregateQuery

from .aggregate import PANE_TUPLES, PRESET, aggregate_bundle, random_columns
from .registry import Result, figure

__all__ = ["table_rates"]

#: Panes of the table; runs of the host and of the device, in turns, of which the best counts.
PANES, RUNS = 40, 3


def table_rates(parameters, *, pane_tuples, panes, report):
    """Aggregate a table on the host and on a simulated accelerator, in turns.

    Returns
    -------
    dict
        ``device`` and ``host``, each with ``tuples_per_s`` and ``processor_seconds`` of its best
        run, ``results``, and the device's ``cycles``.

    Raises
    ------
    AssertionError
        If the two do not give the same table.
    """
    uri = f"sim:{aggregate_bundle(parameters, report)}"
    table = pa.table(random_columns(parameters, pane_tuples=pane_tuples, panes=panes))
    query = AggregateQuery(
        time="time",
        window=parameters.operator.size,
        advance=parameters.operator.advance,
        keys=["key"],
        aggregates={"total": "sum:value"},
    )
    streams, runs, results = [], {"host": [], "device": []}, {}
    for _ in range(RUNS):
        for name, device in (("host", None), ("device", uri)):
            rows = Pipeline.of_table(table, sorted_by=["time"])
            pipeline = rows.aggregate(query, device=device, started=streams.append)
            began, worked = time.monotonic(), time.process_time()
            results[name] = pipeline.collect()
            runs[name].append((time.monotonic() - began, time.process_time() - worked))
    if results["device"] != results["host"]:
        raise AssertionError("the accelerator and the host give different tables")
    best = {name: min(seconds) for name, seconds in runs.items()}
    return {
        **{
            name: {"tuples_per_s": table.num_rows / wall, "processor_seconds": processor}
            for name, (wall, processor) in best.items()
        },
        "tuples": table.num_rows,
        "results": results["device"].num_rows,
        "cycles": streams[-1].cycles,
    }


@figure("aggregate.sim_tuples_per_s", unit="tuples/s", goal=">= 3e6")
def sim_tuples_per_s(report):
    """Tuples per second of a sum by key on a simulated accelerator, from Arrow to Arrow.

    2^14 keys, a sliding window of 16 panes, one core; 2^16 rows in a pane, random keys and values,
    a table sorted by time. From the table to the table of all windows of all keys, which has to be
    that of the host. The best of three runs, in turns with the host's own.
    """
    rates = table_rates(
        AGGREGATE_PRESETS[PRESET], pane_tuples=PANE_TUPLES, panes=PANES, report=report
    )
    device, host = rates["device"], rates["host"]
    counts = f"{rates['results']} results of {rates['tuples']} tuples, {rates['cycles']} cycles"
    alone = f"the host alone: {host['tuples_per_s'] / 1e6:.2f} M tuples/s"
    return Result(
        device["tuples_per_s"],
        notes=(
            f"{counts}, {device['processor_seconds']:.2f} s of processors",
            f"{alone}, {host['processor_seconds']:.2f} s of processors",
        ),
        details=rates,
    )
