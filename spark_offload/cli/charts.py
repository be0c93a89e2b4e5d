# SPDX-License-Identifier: Apache-2.0
"""The parts of a report: figures of one run, and the frame of the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from host.files.writing import atomic_output
from spark_offload.measures import JoinMetrics

__all__ = [
    "NOTHING",
    "Run",
    "Stage",
    "derive_figures",
    "filled",
    "percentile",
    "section",
    "stages",
    "table",
    "write_page",
]

# Figures of one run, derived from what the device counted and nothing else.


@dataclass(frozen=True)
class Run:
    """Record of one join that has run, for its report.

    Parameters
    ----------
    title, question : str
        What was joined, in a line and in a sentence.
    left_rows, right_rows, results : int
        Rows in and pairs out.
    seconds : float
        From the call of Spark's action to the last result row on the driver.
    metrics : JoinMetrics
        What the tasks reported.
    engine : str
        ``"scan"`` or ``"index"``.
    storage : mapping of str to int
        ``cores``, ``lanes`` and ``probes`` of the accelerator; empty for a software device.
    check : str
        What the answer was compared with, and what came out.
    agrees : bool or None
        Whether it agreed; None if it was not compared.
    check_seconds : float or None
        Time that the join compared with took, when it is Spark's own.
    explanation : str
        How Spark ran it.
    software_seconds : float or None
        Time that the same join took in Spark on the software engine, if it was run there too.
    estimates : sequence of (str, float, str)
        Devices, the seconds that the same join takes on each by the cost model, and the terms.
    """

    title: str
    question: str
    left_rows: int
    right_rows: int
    results: int
    seconds: float
    metrics: JoinMetrics
    engine: str
    storage: Mapping[str, int]
    check: str
    agrees: bool | None
    check_seconds: float | None
    explanation: str
    software_seconds: float | None = None
    estimates: Sequence[tuple[str, float, str]] = ()

    @property
    def tuples(self) -> int:
        """Input rows of both sides."""
        return self.left_rows + self.right_rows


@dataclass(frozen=True)
class Stage:
    """Cycles of one stage of the accelerator, by what it did in them."""

    name: str
    busy: int
    stalled: int
    idle: int


def stages(counters: Mapping[str, int], cores: int) -> list[Stage]:
    """Return the stages that the counters tell about.

    Regions are counted as a sum over all of them, two a core, so their cycles are that many times
    the accelerator's.
    """
    cycles = counters.get("cycles", 0)
    found = []
    for name, prefix, units in (
        ("Ingress", "ingress", 1),
        (f"{2 * cores} regions", "region", 2 * cores),
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
    metrics, counters = run.metrics, run.metrics.counters()
    cycles = counters.get("cycles", 0)
    device_seconds = metrics.total("device_seconds")
    rows = [
        ("Input rows, left + right", f"{run.left_rows:,} + {run.right_rows:,}"),
        ("Results", f"{run.results:,}"),
        ("Time in Spark, whole join", f"{run.seconds:.2f} s"),
        ("Tuples/s, whole join", f"{run.tuples / max(run.seconds, 1e-9):,.0f}"),
    ]
    if device_seconds:
        rows += [
            ("Time in the device", f"{device_seconds:.2f} s"),
            ("Tuples/s, device alone", f"{run.tuples / device_seconds:,.0f}"),
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
        rows.append(("Cycles per tuple", f"{cycles / max(run.tuples, 1):,.1f}"))
    if metrics.hardware is not None:
        rows.append(("In hardware", metrics.hardware))
    if cycles and "comparisons" in counters:
        comparisons = counters["comparisons"]
        rows.append(("Comparisons", f"{comparisons:,}"))
        rows.append(("Comparisons per cycle", f"{comparisons / cycles:,.2f}"))
        if device_seconds:
            rows.append(("Comparisons/s, simulated", f"{comparisons / device_seconds:,.0f}"))
        if run.engine == "scan":
            comparators = 2 * run.storage["cores"] * run.storage["lanes"] * run.storage["probes"]
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
    for stage in stages(counters, run.storage.get("cores", 0)):
        parts = (stage.busy, stage.stalled, stage.idle)
        shares = " / ".join(f"{100 * part / max(sum(parts), 1):.1f}" for part in parts)
        rows.append((f"{stage.name}: busy / stalled / idle", f"{shares} %"))
    rows.append(("Check", run.check))
    return rows


def table(rows: Sequence[tuple[str, str]]) -> str:
    """Return the rows as two aligned columns."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in rows)


# The frame of every report: one HTML file with its style in it, which opens offline.

NOTHING = '<p class="soft">Nothing to draw: the device gave no such figures in this run.</p>'


def filled(name: str, **values: str) -> str:
    """Return a template that lies beside this file, with HTML in its places."""
    text = files("spark_offload.cli").joinpath(name).read_text("utf-8")
    return Template(text).substitute(values)


def section(title: str, text: str, body: str) -> str:
    """Return a section: a title and a text, which are escaped, above its body."""
    return (
        f"<section>\n<h2>{escape(title)}</h2>\n"
        f'<p class="soft">{escape(text)}</p>\n{body}\n</section>'
    )


def write_page(title: str, body: str, path: Path) -> None:
    """Write a page to ``path``, whole or not at all."""
    page = filled("frame.html", title=escape(title), body=body)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_output(path) as place:
        place.write_text(page, "utf-8")
