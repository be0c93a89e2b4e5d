# SPDX-License-Identifier: Apache-2.0
"""The demo's report: one HTML file that opens offline, made of what one run measured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, TypeVar

from host.drawing import amount_chart, bar_chart, line_chart, share_chart
from host.files.writing import atomic_output
from host.session.records import ChangeLog, corners
from spark_offload.cli.join import Joined
from spark_offload.measures import TaskMetrics

__all__ = [
    "Run",
    "derive_figures",
    "percentile",
    "stages",
    "write_report",
]

# Figures of one run, derived from what the device counted and nothing else.


@dataclass(frozen=True)
class Run:
    """Record of one join that has run, for its report.

    Parameters
    ----------
    title, question : str
        What was joined, in a line and in a sentence.
    joined : Joined
        What was joined, and what that took.
    check : str
        What the answer was compared with, and what came out.
    agrees : bool or None
        Whether it agreed; None if it was not compared.
    check_seconds : float or None
        Time that the join compared with took, when it is Spark's own.
    software_seconds : float or None
        Time that the same join took in Spark on the software engine, if it was run there too.
    estimates : sequence of (str, float, str)
        Devices, the seconds that the same join takes on each by the cost model, and the terms.
    """

    title: str
    question: str
    joined: Joined
    check: str
    agrees: bool | None
    check_seconds: float | None
    software_seconds: float | None = None
    estimates: Sequence[tuple[str, float, str]] = ()


@dataclass(frozen=True)
class Stage:
    """Cycles of one stage of the accelerator, by what it did in them."""

    name: str
    busy: int
    stalled: int
    idle: int


def stages(joined: Joined) -> list[Stage]:
    """Return the stages that the counters tell about.

    Regions are counted as a sum over all of them, two a core, so their cycles are that many times
    the accelerator's.
    """
    counters, manifest = joined.metrics.counters(), joined.plan.manifest
    cycles, regions = counters.get("cycles", 0), 2 * (manifest.storage.cores if manifest else 0)
    found = []
    for name, prefix, units in (
        ("Ingress", "ingress", 1),
        (f"{regions} regions", "region", regions),
        ("Output", "output", 1),
    ):
        if cycles and f"{prefix}_busy" in counters:
            busy, stalled = counters[f"{prefix}_busy"], counters[f"{prefix}_stalled"]
            found.append(Stage(name, busy, stalled, max(0, units * cycles - busy - stalled)))
    return found


def percentile(histogram: Mapping[int, int], share: float) -> int:
    """Return the bin in which the given share of all entries is reached."""
    wanted = share * sum(histogram.values())
    seen = 0
    for low in sorted(histogram):
        seen += histogram[low]
        if seen >= wanted:
            return low
    return 0


def derive_figures(run: Run) -> list[tuple[str, str]]:
    """Return the rows of the table that is printed and reported: name and value."""
    joined, metrics = run.joined, run.joined.metrics
    counters, manifest, tuples = metrics.counters(), joined.plan.manifest, sum(joined.rows)
    cycles = counters.get("cycles", 0)
    device_seconds = metrics.total("device_seconds")
    rows = [
        ("Input rows, left + right", " + ".join(f"{rows:,}" for rows in joined.rows)),
        ("Results", f"{joined.results:,}"),
        ("Time in Spark, whole join", f"{joined.seconds:.2f} s"),
        ("Tuples/s, whole join", f"{tuples / max(joined.seconds, 1e-9):,.0f}"),
    ]
    if device_seconds:
        rows += [
            ("Time in the device", f"{device_seconds:.2f} s"),
            ("Tuples/s, device alone", f"{tuples / device_seconds:,.0f}"),
        ]
    if run.software_seconds is not None:
        rows.append(("Time on the software engine", f"{run.software_seconds:.2f} s"))
    if run.check_seconds is not None:
        rows.append(("Time of Spark's own join", f"{run.check_seconds:.2f} s"))
    rows += [
        (f"By the cost model, {name}", f"{1e3 * seconds:,.3g} ms: {terms}")
        for name, seconds, terms in run.estimates
    ]
    if cycles:
        rows.append(("Simulated cycles", f"{cycles:,}"))
        rows.append(("Cycles per tuple", f"{cycles / max(tuples, 1):,.1f}"))
    if metrics.hardware is not None:
        rows.append(("In hardware", metrics.hardware))
    if cycles and "comparisons" in counters:
        comparisons = counters["comparisons"]
        rows.append(("Comparisons", f"{comparisons:,}"))
        rows.append(("Comparisons per cycle", f"{comparisons / cycles:,.2f}"))
        if device_seconds:
            rows.append(("Comparisons/s, simulated", f"{comparisons / device_seconds:,.0f}"))
        if manifest is not None and manifest.engine == "scan":
            comparators = 2 * manifest.storage.cores * manifest.storage.lanes * manifest.probes
            rows.append(("Cycle efficiency", f"{100 * comparisons / (comparators * cycles):.1f} %"))
    latency = metrics.latency()
    if cycles and latency:
        rows.append(
            (
                "Latency, median / 99 % / most",
                " / ".join(f"{percentile(latency, share):,}" for share in (0.5, 0.99, 1.0))
                + " cycles",
            )
        )
    for stage in stages(joined):
        parts = (stage.busy, stage.stalled, stage.idle)
        shares = " / ".join(f"{100 * part / max(sum(parts), 1):.1f}" for part in parts)
        rows.append((f"{stage.name}: busy / stalled / idle", f"{shares} %"))
    rows.append(("Check", run.check))
    return rows


# The frame of every report: one HTML file with its style in it, which opens offline.

NOTHING = '<p class="soft">Nothing to draw: the device gave no such figures in this run.</p>'


def _filled(name: str, **values: str) -> str:
    """Return a template that lies beside this file, with HTML in its places."""
    text = files("spark_offload.cli").joinpath(name).read_text("utf-8")
    return Template(text).substitute(values)


def _section(title: str, text: str, body: str) -> str:
    """Return a section: a title and a text, which are escaped, above its body."""
    return (
        f"<section>\n<h2>{escape(title)}</h2>\n"
        f'<p class="soft">{escape(text)}</p>\n{body}\n</section>'
    )


# The sections of the report.

Record = TypeVar("Record", bound=ChangeLog[Any])

BARS = 60


def write_report(run: Run, path: Path) -> None:
    """Write the report of ``run`` to ``path``, whole or not at all."""
    rows = derive_figures(run)
    body = _filled(
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
        explanation=escape(str(run.joined.plan.explanation)),
    )
    page = _filled("frame.html", title=escape(run.title), body=body)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_output(path) as place:
        place.write_text(page, "utf-8")


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
    bars.insert(0, ("This run", run.joined.seconds, f"{run.joined.seconds:.2f} s"))
    chart = amount_chart(bars, title="Time of the same join elsewhere")
    text = "Whole joins in Spark, from the action to the last row. A simulated cycle is no time."
    if run.joined.metrics.hardware is not None:
        text += f" In hardware: {run.joined.metrics.hardware.replace('`', '')}."
    if run.estimates:
        text += " Below them, devices by the cost model, without the way of the rows to them."
        chart += _two_columns([(name, terms) for name, _, terms in run.estimates])
    return _section("The same join elsewhere", text, chart)


def _two_columns(rows: Sequence[tuple[str, str]]) -> str:
    """Return names and values as a table, which scrolls by itself where it is too wide."""
    lines = "".join(
        f'<tr><th>{escape(name)}</th><td class="number">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f'<div class="scroll"><table>{lines}</table></div>'


def _timeline(run: Run) -> dict[str, str]:
    """Results so far over cycles so far; of several tasks, the one with the most results."""
    task = max(run.joined.metrics.tasks, key=lambda task: task.results, default=None)
    if task is None or len(task.timeline) < 2:
        return {"timeline": NOTHING, "timeline_text": ""}
    of_task = "" if len(run.joined.metrics.tasks) == 1 else f" Of partition {task.partition}."
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
    return _section("Ordering period over time", f"Partition {task.partition}: {record}.", chart)


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
    return _section("Active cores and input rate over time", text, "\n".join(charts))


def _most_changes(
    run: Run, record_of: Callable[[TaskMetrics], Record | None]
) -> tuple[TaskMetrics, Record] | None:
    """Return the task whose record has most changes, and the record; None if none has a record."""
    found = [
        (task, record)
        for task in run.joined.metrics.tasks
        if (record := record_of(task)) is not None
    ]
    return max(
        found,
        key=lambda entry: (entry[1].changed, entry[0].cycles, entry[0].partition),
        default=None,
    )


def _latency(run: Run) -> dict[str, str]:
    """Distribution of the latency of results."""
    histogram = run.joined.metrics.latency()
    if not histogram or not run.joined.metrics.total("cycles"):
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
    found = stages(run.joined)
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
