# SPDX-License-Identifier: Apache-2.0
"""The report of a streaming join on an elastic pool: load and devices over the micro-batches."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from host.errors import UsageError
from host.session.records import corners
from spark_offload.devices.pool_decision import PoolDecision
from spark_offload.report.charts import line_chart
from spark_offload.report.frame import NOTHING, section, write_page
from spark_offload.streaming.metrics import MicroBatch

__all__ = ["write_pool_report"]

COLUMNS = ("micro-batch", "machine", "devices in use", "load", "rows observed", "latency, ms")


def write_pool_report(
    batches: Sequence[MicroBatch], path: Path, *, title: str = "Devices of an elastic pool"
) -> None:
    """Write an HTML report of the micro-batches of a streaming join, which opens offline.

    It draws the rows per second and, for each machine, the devices in use, and has a table of the
    decisions with what led to them.

    Parameters
    ----------
    batches : sequence of MicroBatch
        From :func:`spark_offload.stream_metrics` or a listener, in order; of several joins, those
        of the first one are drawn.
    path : Path
        File to write.
    title : str
        Title of the page.

    Raises
    ------
    UsageError
        If there is no micro-batch.
    """
    if not batches:
        raise UsageError(
            "A report of a pool needs at least one micro-batch; write it when the query has run."
        )
    batches = [batch for batch in batches if batch.join == batches[0].join]
    decisions = [decision for batch in batches for decision in batch.decisions]
    body = "\n".join(
        [f"<h1>{escape(title)}</h1>", _rates(batches), _devices(batches, decisions)]
        + ([_table(decisions)] if decisions else [])
    )
    write_page(title, body, path)


def _rates(batches: Sequence[MicroBatch]) -> str:
    """A section with the rate of the input, and how long tasks waited for devices."""
    points = [
        (float(batch.batch), batch.rows / batch.trigger_seconds)
        for batch in batches
        if batch.trigger_seconds
    ]
    waited = sum(batch.waited_seconds for batch in batches)
    text = (
        f"{sum(batch.rows for batch in batches):,} rows of both sides in {len(batches):,} "
        f"micro-batches. Tasks waited {waited:.2f} s for devices in all."
    )
    chart = line_chart(
        points, title="Rows per second", x_label="micro-batch", y_label="rows per second"
    )
    return section("Rows per second", text, chart if points else NOTHING)


def _devices(batches: Sequence[MicroBatch], decisions: Sequence[PoolDecision]) -> str:
    """A section with the devices in use on each machine."""
    charts = []
    for machine in sorted({decision.machine for decision in decisions}):
        own = [decision for decision in decisions if decision.machine == machine]
        numbers = [(float(decision.batch), float(decision.active)) for decision in own]
        title = f"Devices in use on {machine}, of {own[-1].devices}"
        charts.append(
            f"<p>{escape(title)}</p>"
            + line_chart(
                corners(numbers, batches[-1].batch + 1), title=title, x_label="micro-batch",
                y_label="devices in use",
            )
        )  # fmt: skip
    text = "A number holds from the start of its micro-batch on. Every machine decides for itself."
    return section("Devices in use", text, "\n".join(charts) or NOTHING)


def _table(decisions: Sequence[PoolDecision]) -> str:
    """A section with the decisions that an observation led to, and the first one of a machine."""
    started: set[str] = set()
    rows = []
    for decision in decisions:
        if decision.seen is None and decision.machine in started:
            continue
        started.add(decision.machine)
        rows.append(_cells(decision))
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return section(
        "Decisions",
        "What was observed of the micro-batches before, and the number of devices that it led to.",
        f'<div class="scroll"><table><tr>{head}</tr>{lines}</table></div>',
    )


def _cells(decision: PoolDecision) -> tuple[str, ...]:
    """Return the cells of a decision's row, in the order of :data:`COLUMNS`."""
    seen = decision.seen
    number = (str(decision.batch), decision.machine, str(decision.active))
    if seen is None:
        return (*number, "", "", "")
    latency = "" if seen.latency is None else f"{seen.latency / 1_000:,.1f}"
    return (*number, f"{float(seen.load):.0%}", f"{seen.arrived:,}", latency)
