# SPDX-License-Identifier: Apache-2.0
"""The parts of a report: charts as inline SVG, figures of one run, and the frame of the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
import math
from pathlib import Path
from string import Template

from host.files.writing import atomic_output
from spark_offload.measures import JoinMetrics

__all__ = [
    "NOTHING",
    "Run",
    "Stage",
    "amount_chart",
    "axis_ticks",
    "bar_chart",
    "derive_figures",
    "filled",
    "line_chart",
    "percentile",
    "section",
    "share_chart",
    "stages",
    "table",
    "write_page",
]

# Charts as inline SVG: no script, no outside file; colours come from the page's style.
#
# Every mark has a ``<title>``, which browsers show when the pointer rests on it.

WIDTH, HEIGHT = 720, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 12, 44


def axis_ticks(high: float, count: int = 5) -> list[float]:
    """Return round numbers from zero to just beyond ``high``, about ``count`` of them."""
    if high <= 0:
        return [0.0, 1.0]
    rough = high / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return [step * index for index in range(math.ceil(high / step) + 1)]


def line_chart(
    points: Sequence[tuple[float, float]], *, title: str, x_label: str, y_label: str
) -> str:
    """Draw points as an area under a line, from x = 0."""
    frame = _Frame(max((x for x, _ in points), default=0), max((y for _, y in points), default=0))
    places = [(frame.x(x), frame.y(y)) for x, y in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    marks = []
    if places:
        base = frame.y(0)
        area = f"{places[0][0]:.1f},{base:.1f} {line} {places[-1][0]:.1f},{base:.1f}"
        marks = [
            f'<polygon class="area" points="{area}"/>',
            f'<polyline class="line" points="{line}"/>',
        ]
        marks += [
            f'<circle class="hit" cx="{px:.1f}" cy="{py:.1f}" r="7">'
            f"<title>{_number(x)} {escape(x_label)}: {_number(y)} {escape(y_label)}</title>"
            "</circle>"
            for (x, y), (px, py) in zip(points, places, strict=True)
        ]
    return frame.svg(marks, title=title, x_label=x_label, y_label=y_label)


def bar_chart(
    bins: Sequence[tuple[float, float, float]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    markers: Sequence[tuple[float, str]] = (),
) -> str:
    """Draw bins ``(low, high, count)`` as bars, and ``markers`` as labelled vertical lines."""
    frame = _Frame(
        max((high for _, high, _ in bins), default=0),
        max((count for _, _, count in bins), default=0),
    )
    marks = []
    for low, high, count in bins:
        left, right, top = frame.x(low), frame.x(high), frame.y(count)
        gap = 1 if right - left > 3 else 0
        marks.append(
            f'<rect class="bar" x="{left:.1f}" y="{top:.1f}" '
            f'width="{max(right - left - gap, 0.5):.1f}" height="{frame.y(0) - top:.1f}">'
            f"<title>{_number(low)} to {_number(high)} {escape(x_label)}: "
            f"{_number(count)} {escape(y_label)}</title></rect>"
        )
    for index, (value, label) in enumerate(markers):
        x, y = frame.x(value), TOP + 12 + 15 * index
        # A label stands on the side of its line that has the room.
        anchor, offset = ("end", -5) if x > WIDTH * 0.7 else ("start", 5)
        marks.append(
            f'<line class="marker" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{frame.y(0):.1f}"/>'
            f'<text class="note" x="{x + offset:.1f}" y="{y}" text-anchor="{anchor}">'
            f"{escape(label)}</text>"
        )
    return frame.svg(marks, title=title, x_label=x_label, y_label=y_label)


def share_chart(rows: Sequence[tuple[str, Sequence[tuple[str, float]]]], *, title: str) -> str:
    """Draw rows ``(name, ((kind, amount), …))`` as bars of full width, cut by share.

    The kinds are also the classes that the page's style colours.
    """
    height = 46
    name_width = 150
    span = WIDTH - name_width - RIGHT
    marks = []
    for index, (name, parts) in enumerate(rows):
        y = index * height + 8
        marks.append(
            f'<text class="name" x="{name_width - 12}" y="{y + 20}" text-anchor="end">'
            f"{escape(name)}</text>"
        )
        total = sum(amount for _, amount in parts) or 1.0
        x = float(name_width)
        for kind, amount in parts:
            width = span * amount / total
            label = f"{100 * amount / total:.1f} %"
            marks.append(
                f'<rect class="{escape(kind)}" x="{x:.1f}" y="{y}" '
                f'width="{max(width - 2, 0):.1f}" height="30" rx="3">'
                f"<title>{escape(name)}, {escape(kind)}: {label} "
                f"({_number(amount)} cycles)</title></rect>"
            )
            if width > 54:
                marks.append(
                    f'<text class="share on-{escape(kind)}" x="{x + width / 2:.1f}" y="{y + 20}" '
                    f'text-anchor="middle">{label}</text>'
                )
            x += width
    body = "".join(marks)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height * len(rows) + 4}" role="img" '
        f'aria-label="{escape(title)}">{body}</svg>'
    )


def amount_chart(rows: Sequence[tuple[str, float]], *, title: str, unit: str) -> str:
    """Draw rows ``(name, amount)`` as horizontal bars, from zero, with the amount beside each."""
    height, name_width, value_width = 38, 190, 90
    most = max((amount for _, amount in rows), default=0) or 1.0
    marks = []
    for index, (name, amount) in enumerate(rows):
        y = index * height + 6
        width = max((WIDTH - name_width - value_width) * amount / most, 1.0)
        label = f"{amount:.2f} {escape(unit)}"
        marks.append(
            f'<text class="name" x="{name_width - 12}" y="{y + 18}" text-anchor="end">'
            f"{escape(name)}</text>"
            f'<rect class="bar" x="{name_width}" y="{y}" width="{width:.1f}" height="26" rx="3">'
            f"<title>{escape(name)}: {label}</title></rect>"
            f'<text class="note" x="{name_width + width + 8:.1f}" y="{y + 18}">{label}</text>'
        )
    return (
        f'<svg viewBox="0 0 {WIDTH} {height * len(rows) + 4}" role="img" '
        f'aria-label="{escape(title)}">{"".join(marks)}</svg>'
    )


class _Frame:
    """Scales, grid and axis labels of one chart, both axes from zero.

    The horizontal axis ends with the data, the vertical one with the round number above them.
    """

    def __init__(self, x_high: float, y_high: float) -> None:
        self.x_high = x_high or 1.0
        self.x_ticks = [tick for tick in axis_ticks(x_high, 8) if tick <= self.x_high]
        self.y_ticks = axis_ticks(y_high)

    def x(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / self.x_high

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / self.y_ticks[-1]

    def svg(self, marks: Sequence[str], *, title: str, x_label: str, y_label: str) -> str:
        grid = [
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{self.y(tick):.1f}" '
            f'y2="{self.y(tick):.1f}"/><text class="tick" x="{LEFT - 8}" '
            f'y="{self.y(tick) + 4:.1f}" text-anchor="end">{_number(tick)}</text>'
            for tick in self.y_ticks
        ]
        grid += [
            f'<text class="tick" x="{self.x(tick):.1f}" y="{HEIGHT - BOTTOM + 18}" '
            f'text-anchor="middle">{_number(tick)}</text>'
            for tick in self.x_ticks
        ]
        labels = (
            f'<text class="label" x="{(WIDTH + LEFT) / 2}" y="{HEIGHT - 6}" '
            f'text-anchor="middle">{escape(x_label)}</text>'
            f'<text class="label" transform="translate(14 {(HEIGHT - BOTTOM + TOP) / 2}) '
            f'rotate(-90)" text-anchor="middle">{escape(y_label)}</text>'
        )
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
            f"{''.join(grid)}{''.join(marks)}{labels}</svg>"
        )


def _number(value: float) -> str:
    """Write a number of an axis: short above ten thousand, else with its thousands marked."""
    for power, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= power:
            unit = {"G": 1e9, "M": 1e6, "k": 1e3}[letter]
            return f"{value / unit:.4g} {letter}"
    return f"{value:,.6g}"


# Figures of one run, derived from what the device counted and nothing else.


@dataclass(frozen=True)
class Run:
    """One join that has run.

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
