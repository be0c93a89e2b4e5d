# SPDX-License-Identifier: Apache-2.0
"""The demo's report: one HTML file that opens offline, made of what one run measured."""

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any, TypeVar

from host.drawing import amount_chart, bar_chart, line_chart, share_chart
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
from spark_offload.measures import TaskMetrics

__all__ = [
    "write_report",
]

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
        text += f" In hardware: {run.metrics.hardware.replace('`', '')}."
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
        y_label=f"{record.unit} per star",
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
