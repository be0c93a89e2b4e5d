# SPDX-License-Identifier: Apache-2.0
"""Charts as inline SVG: no script, no outside file; colours come from the page's style.

Every mark has a ``<title>``, which browsers show when the pointer rests on it.
"""

from collections.abc import Sequence
from html import escape
import math

__all__ = ["axis_ticks", "bar_chart", "line_chart", "share_chart"]

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
