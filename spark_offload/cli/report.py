# SPDX-License-Identifier: Apache-2.0
"""Reports as HTML files that open offline: of the demo, and of an elastic pool of devices."""

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any, TypeVar

from host.drawing import amount_chart, bar_chart, line_chart, share_chart
from host.errors import UsageError
from host.session.records import ChangeLog, corners
from spark_offload.cli.charts import (
    NOTHING,
    Run,
    derive_figures,
    filled,
    percentile,
    section,
    stages,
    write_page,
)
from spark_offload.cluster.pools import PoolDecision
from spark_offload.measures import TaskMetrics
from spark_offload.stream.metrics import MicroBatch

__all__ = [
    "write_pool_report",
    "write_report",
]

# The demo's report: one HTML file that opens offline, made of what one run measured.

Record = TypeVar("Record", bound=ChangeLog[Any])

BARS = 60


def write_report(run: Run, path: Path) -> None:
    """Write the report of ``run`` to ``path``, whole or not at all."""
    rows = derive_figures(run)
    body = filled(
        "page.html",
        title=escape(run.title),
        question=escape(run.question),
        verdict=escape(run.check),
        verdict_class={True: "good", False: "bad", None: ""}[run.agrees],
        tiles=_tiles(rows),
        elsewhere=_elsewhere(run),
        **_timeline(run),
        precision=_precision(run),
        elastic=_elastic(run),
        **_latency(run),
        **_stages(run),
        figures=_two_columns(rows),
        explanation=escape(run.explanation),
    )
    write_page(run.title, body, path)


def _tiles(rows: list[tuple[str, str]]) -> str:
    shown = ("Results", "Tuples/s, whole join", "Cycles per tuple", "Cycle efficiency")
    return "".join(
        f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>"
        for name, value in rows
        if name in shown
    )


def _elsewhere(run: Run) -> str:
    """A section with the time of the same join on other engines; empty if it ran nowhere else."""
    others = (
        ("Software engine", run.software_seconds),
        ("Spark's own join", run.check_seconds),
    )
    bars = [(name, seconds, f"{seconds:.2f} s") for name, seconds in others if seconds is not None]
    bars += [(name, seconds, f"{1e3 * seconds:,.3g} ms") for name, seconds, _ in run.estimates]
    if not bars:
        return ""
    bars.insert(0, ("This run", run.seconds, f"{run.seconds:.2f} s"))
    chart = amount_chart(bars, title="Time of the same join elsewhere")
    text = "Whole joins in Spark, from the action to the last row. A simulated cycle is no time."
    if run.metrics.hardware is not None:
        text += f" In hardware: {run.metrics.hardware}."
    if run.estimates:
        text += " Below them, devices by the cost model, without the way of the rows to them."
        chart += _two_columns([(name, terms) for name, _, terms in run.estimates])
    return section("The same join elsewhere", text, chart)


def _two_columns(rows: Sequence[tuple[str, str]]) -> str:
    """Return names and values as a table, which scrolls by itself where it is too wide."""
    lines = "".join(
        f'<tr><th>{escape(name)}</th><td class="number">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f'<div class="scroll"><table>{lines}</table></div>'


def _timeline(run: Run) -> dict[str, str]:
    """Results so far over cycles so far; of several tasks, the one with the most results."""
    task = max(run.metrics.tasks, key=lambda task: task.results, default=None)
    if task is None or len(task.timeline) < 2:
        return {"timeline": NOTHING, "timeline_text": ""}
    of_task = "" if len(run.metrics.tasks) == 1 else f" Of partition {task.partition}."
    return {
        "timeline": line_chart(
            [(0, 0), *task.timeline],
            title="Results over time",
            x_label="cycles",
            y_label="results so far",
        ),
        "timeline_text": f"Results emitted by the accelerator, over its clock cycles.{of_task}",
    }


def _precision(run: Run) -> str:
    """A section with the period over cycles, if it was adaptive: of the task with most changes."""
    found = _most_changes(run, lambda task: task.precision)
    if found is None:
        return ""
    task, record = found
    periods = [(0, record.first), *((change.cycle, change.period) for change in record.changes)]
    chart = line_chart(
        corners(periods, task.cycles), title="Ordering period over time", x_label="cycles",
        y_label="probes per star",
    )  # fmt: skip
    return section("Ordering period over time", f"Partition {task.partition}: {record}.", chart)


def _elastic(run: Run) -> str:
    """A section with rate and active cores over cycles, of the elastic task with most changes."""
    found = _most_changes(run, lambda task: task.elastic)
    if found is None:
        return ""
    task, record = found
    active = [(0, record.cores), *((one.cycle, len(one.cores)) for one in record.changes)]
    charts = [
        line_chart(
            corners(active, task.cycles), title="Active cores over time", x_label="cycles",
            y_label="active cores",
        )
    ]  # fmt: skip
    if len(record.rates) > 1:
        charts.append(
            line_chart(
                list(record.rates), title="Input rate over time", x_label="cycles",
                y_label="tuples per 1,000 cycles",
            )
        )  # fmt: skip
    text = f"Partition {task.partition}: {record}."
    return section("Active cores and input rate over time", text, "\n".join(charts))


def _most_changes(
    run: Run, record_of: Callable[[TaskMetrics], Record | None]
) -> tuple[TaskMetrics, Record] | None:
    """Return the task whose record has most changes, and the record; None if none has a record."""
    found = [
        (task, record) for task in run.metrics.tasks if (record := record_of(task)) is not None
    ]
    return max(
        found,
        key=lambda entry: (entry[1].changed, entry[0].cycles, entry[0].partition),
        default=None,
    )


def _latency(run: Run) -> dict[str, str]:
    """Distribution of the latency of results."""
    histogram = run.metrics.latency()
    if not histogram or not run.metrics.total("cycles"):
        return {"latency": NOTHING, "latency_text": ""}
    bar = max(1, -(-(max(histogram) + 1) // BARS))
    bars: dict[int, int] = {}
    for low, count in histogram.items():
        bars[low // bar * bar] = bars.get(low // bar * bar, 0) + count
    marks = [
        (float(percentile(histogram, share)), f"{name} {percentile(histogram, share):,}")
        for share, name in ((0.5, "median"), (0.99, "99 %"))
    ]
    return {
        "latency": bar_chart(
            [(low, low + bar, count) for low, count in sorted(bars.items())],
            title="Latency distribution",
            x_label="cycles",
            y_label="results",
            markers=marks,
        ),
        "latency_text": (
            "Cycles from the one in which the accelerator accepted the later tuple of a pair to "
            "the one in which it emitted the pair. Tuples are offered as fast as they are "
            "accepted, so waiting behind earlier tuples counts."
        ),
    }


def _stages(run: Run) -> dict[str, str]:
    """Share of the cycles that each stage was busy, stalled or idle."""
    found = stages(run.metrics.counters(), run.storage.get("cores", 0))
    if not found:
        return {"stages": NOTHING, "stages_text": ""}
    return {
        "stages": share_chart(
            [
                (
                    stage.name,
                    [("busy", stage.busy), ("stalled", stage.stalled), ("idle", stage.idle)],
                )
                for stage in found
            ],
            title="Busy, stalled and idle cycles of each stage",
        ),
        "stages_text": (
            "Counted by the accelerator itself, and here as shares of its cycles. The ingress is "
            "busy when it takes an input word and stalled when one has to wait; a region is busy "
            "when it reads a row of its window and stalled when its results are stuck; the output "
            "is busy when a result word is taken and stalled when one has to wait."
        ),
    }


# The report of a streaming join on an elastic pool: load and devices over the micro-batches.

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
