# SPDX-License-Identifier: Apache-2.0
"""SVG drawings: charts of a report, figures with a legend.

A chart of a report is coloured by the style of its page; a figure has a style and a white paper of
its own, so it reads on a dark page too. Drawings are as wide as their place. Every mark has a
``<title>``, which browsers show when the pointer rests on it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
import math

__all__ = [
    "FIGURE",
    "Axis",
    "Frame",
    "amount_chart",
    "axis_ticks",
    "bar_chart",
    "figure",
    "line_chart",
    "share_chart",
]

Points = Sequence[tuple[float, float]]


def _element(tag: str, inside: str = "", **attributes: float | str) -> str:
    """Write an element; ``class_`` is the attribute ``class``, and ``_`` a hyphen elsewhere."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="'
        + (f"{value:.1f}" if isinstance(value, float) else escape(str(value)))
        + '"'
        for name, value in attributes.items()
    )
    return f"<{tag}{written}>{inside}</{tag}>" if inside else f"<{tag}{written}/>"


def _text(x: float, y: float, words: str, **attributes: float | str) -> str:
    return _element("text", escape(words), x=float(x), y=float(y), **attributes)


def _title(words: str) -> str:
    return _element("title", escape(words))


def _picture(width: int, height: int, title: str, marks: Sequence[str], **more: str) -> str:
    """Frame a drawing; the place where it stands decides its width."""
    return _element(
        "svg", "\n".join(marks), viewBox=f"0 0 {width} {height}", role="img", aria_label=title,
        **more,
    )  # fmt: skip


def _number(value: float) -> str:
    """Write a number: with a letter for its thousands where that loses nothing."""
    for least, unit, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        short = f"{value / unit:.4g}"
        if abs(value) >= least and math.isclose(float(short) * unit, value, rel_tol=1e-9):
            return f"{short} {letter}"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:,.6g}"


# Axes, and the frame of a drawing that has two.


def axis_ticks(high: float, count: int = 5) -> list[float]:
    """Return round numbers from zero to just beyond ``high``, about ``count`` of them."""
    if high <= 0:
        return [0.0, 1.0]
    rough = high / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return [step * index for index in range(math.ceil(high / step - 1e-9) + 1)]


class Axis:
    """Scale of one axis.

    Parameters
    ----------
    values : sequence of float
        Values that must have a place.
    low, high : float
        Ends in the drawing.
    log : bool
        Whether equal ratios have equal lengths; else the axis begins with zero.
    count : int
        About how many ticks a linear axis has.
    tight : bool
        Whether a linear axis ends with the greatest value, and not with the tick above it.
    """

    def __init__(
        self, values: Sequence[float], low: float, high: float, *, log: bool = False,
        count: int = 5, tight: bool = False,
    ) -> None:  # fmt: skip
        self.low, self.high, self.log = low, high, log
        most = max(values, default=0.0)
        if log:
            base = 2.0 if most / min(values) < 5_000 and min(values) >= 1 else 10.0
            first = math.floor(math.log(min(values), base) + 1e-9)
            last = max(math.ceil(math.log(most, base) - 1e-9), first + 1)
            step = max(1, -(-(last - first) // 10))
            self.ticks = [base**n for n in range(first, last + 1, step)]
            self.ends = math.log(base**first), math.log(base**last)
        else:
            self.ticks = axis_ticks(most, count)
            self.ends = 0.0, (most or 1.0) if tight else self.ticks[-1]
            self.ticks = [tick for tick in self.ticks if tick <= self.ends[1]]

    def place(self, value: float) -> float:
        """Return where a value is."""
        value = math.log(value) if self.log else value
        share = (value - self.ends[0]) / (self.ends[1] - self.ends[0])
        return self.low + (self.high - self.low) * share


@dataclass(frozen=True)
class Frame:
    """Size of a drawing with two axes, and the margins around these, in pixels at full size."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int

    @property
    def ends(self) -> tuple[int, int]:
        """Right and lower end of the axes."""
        return self.width - self.right, self.height - self.bottom

    def axes(
        self, xs: Sequence[float], ys: Sequence[float], *, log: tuple[bool, bool] = (False, False),
        tight: bool = False,
    ) -> tuple[Axis, Axis]:  # fmt: skip
        """Return both axes for some values."""
        right, lower = self.ends
        x = Axis(xs, self.left, right, log=log[0], count=8 if tight else 5, tight=tight)
        return x, Axis(ys, lower, self.top, log=log[1])

    def grid(self, x: Axis, y: Axis, x_label: str, y_label: str) -> Iterator[str]:
        """Yield lines, numbers and labels of both axes."""
        right, lower = self.ends
        for tick in y.ticks:
            place = y.place(tick)
            yield _element("path", class_="grid", d=f"M{self.left} {place:.1f}H{right}")
            yield _text(self.left - 8, place + 4, _number(tick), text_anchor="end")
        for tick in x.ticks:
            place = x.place(tick)
            if x.log:
                yield _element("path", class_="grid", d=f"M{place:.1f} {self.top}V{lower}")
            yield _text(place, lower + 18, _number(tick), text_anchor="middle")
        middle = (self.top + lower) / 2
        yield _text((self.left + right) / 2, lower + 38, x_label, text_anchor="middle")
        yield _text(
            16, middle, y_label, text_anchor="middle", transform=f"rotate(-90 16 {middle:.1f})"
        )


# Charts of a report.

_CHART = Frame(720, 260, left=64, right=24, top=12, bottom=44)


def line_chart(points: Points, *, title: str, x_label: str, y_label: str) -> str:
    """Draw points as an area under a line, from x = 0."""
    x, y = _CHART.axes([one for one, _ in points], [one for _, one in points], tight=True)
    places = [(x.place(a), y.place(b)) for a, b in points]
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    marks = [*_CHART.grid(x, y, x_label, y_label)]
    if places:
        base = y.place(0)
        area = f"{places[0][0]:.1f},{base:.1f} {line} {places[-1][0]:.1f},{base:.1f}"
        marks.append(_element("polygon", class_="area", points=area))
        marks.append(_element("polyline", class_="line", points=line))
    for (a, b), (left, top) in zip(points, places, strict=True):
        said = _title(f"{_number(a)} {x_label}: {_number(b)} {y_label}")
        marks.append(_element("circle", said, class_="hit", cx=left, cy=top, r=7))
    return _picture(_CHART.width, _CHART.height, title, marks)


def bar_chart(
    bins: Sequence[tuple[float, float, float]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    markers: Sequence[tuple[float, str]] = (),
) -> str:
    """Draw bins ``(low, high, count)`` as bars, and ``markers`` as labelled vertical lines."""
    x, y = _CHART.axes([high for _, high, _ in bins], [count for *_, count in bins], tight=True)
    marks, base = [*_CHART.grid(x, y, x_label, y_label)], y.place(0)
    for low, high, count in bins:
        left, right, top = x.place(low), x.place(high), y.place(count)
        width = max(right - left - (right - left > 3), 0.5)
        said = f"{_number(low)} to {_number(high)} {x_label}: {_number(count)} {y_label}"
        marks.append(
            _element(
                "rect", _title(said), class_="bar", x=left, y=top, width=width, height=base - top
            )
        )
    for index, (value, label) in enumerate(markers):
        at = x.place(value)
        path = f"M{at:.1f} {_CHART.top}V{base:.1f}"
        marks.append(_element("path", class_="marker", d=path))
        # A label stands on the side of its line that has the room.
        anchor, offset = ("end", -5) if at > _CHART.width * 0.7 else ("start", 5)
        top = _CHART.top + 12 + 18 * index
        marks.append(_text(at + offset, top, label, class_="note", text_anchor=anchor))
    return _picture(_CHART.width, _CHART.height, title, marks)


def share_chart(rows: Sequence[tuple[str, Sequence[tuple[str, float]]]], *, title: str) -> str:
    """Draw rows ``(name, ((kind, amount), …))`` as bars of full width, cut by share.

    The kinds are also the classes that the page's style colours.
    """
    height, names = 46, 150
    marks = []
    for index, (name, parts) in enumerate(rows):
        x, y = float(names), index * height + 8
        marks.append(_text(names - 12, y + 20, name, class_="name", text_anchor="end"))
        total = sum(amount for _, amount in parts) or 1.0
        for kind, amount in parts:
            width = (_CHART.width - names - _CHART.right) * amount / total
            label = f"{100 * amount / total:.1f} %"
            said = _title(f"{name}, {kind}: {label} ({_number(amount)} cycles)")
            shown = max(width - 2, 0.0)
            marks.append(
                _element("rect", said, class_=kind, x=x, y=y, width=shown, height=30, rx=3)
            )
            if width > 54:
                look = f"share on-{kind}"
                marks.append(_text(x + width / 2, y + 20, label, class_=look, text_anchor="middle"))
            x += width
    return _picture(_CHART.width, height * len(rows) + 4, title, marks)


def amount_chart(rows: Sequence[tuple[str, float, str]], *, title: str) -> str:
    """Draw rows ``(name, amount, label)`` as horizontal bars from zero, the labels beside them."""
    height, names, labels = 38, 190, 90
    most = max((amount for _, amount, _ in rows), default=0) or 1.0
    marks = []
    for index, (name, amount, label) in enumerate(rows):
        y = index * height + 6
        width = max((_CHART.width - names - labels) * amount / most, 1.0)
        said = _title(f"{name}: {label}")
        marks.append(_text(names - 12, y + 18, name, class_="name", text_anchor="end"))
        marks.append(
            _element("rect", said, class_="bar", x=names, y=y, width=width, height=26, rx=3)
        )
        marks.append(_text(names + width + 8, y + 18, label, class_="note"))
    return _picture(_CHART.width, height * len(rows) + 4, title, marks)


# Figures, which stand alone.

#: Of a figure. On the right is the legend, which has room for the longest label.
FIGURE = Frame(830, 420, left=76, right=300, top=44, bottom=84)
_STYLE = ".grid { stroke: #ddd; }"
#: Colours that are told apart with any kind of colour blindness (Okabe and Ito), then dashed.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")


def figure(
    lines: Sequence[tuple[str, Points]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    conditions: str = "",
    log: tuple[bool, bool] = (False, False),
) -> str:
    """Draw series ``(label, points)`` as lines with a legend: the same numbers, the same bytes.

    Parameters
    ----------
    conditions : str
        What holds for all of it; stands below the drawing.
    log : (bool, bool)
        Whether the x axis, and the y axis, is logarithmic.
    """
    lines = [(label, points) for label, points in lines if points]
    xs, ys = ([pair[n] for _, points in lines for pair in points] for n in range(2))
    x, y = FIGURE.axes(xs, ys, log=log)
    marks = [
        _element("style", _STYLE),
        _element("rect", width=FIGURE.width, height=FIGURE.height, fill="#fff"),
        _text(FIGURE.left, 24, title, font_size=15, font_weight="bold"),
        *FIGURE.grid(x, y, x_label, y_label),
        _text(FIGURE.left, FIGURE.height - 12, conditions, font_size=11),
    ]
    for index, (label, points) in enumerate(lines):
        look: dict[str, str] = {"stroke": _COLOURS[index % len(_COLOURS)], "stroke_width": "2"}
        if index >= len(_COLOURS):
            look["stroke_dasharray"] = "6 4"
        places = [(x.place(a), y.place(b)) for a, b in points]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        marks.append(_element("polyline", points=path, fill="none", **look))
        for (a, b), (left, top) in zip(points, places, strict=True):
            said = _title(f"{label}: {_number(a)}, {b:,.4g}")
            marks.append(_element("circle", said, cx=left, cy=top, r=3.5, fill=look["stroke"]))
        at, legend = FIGURE.top + 8 + 20 * index, FIGURE.ends[0] + 16
        marks.append(_element("path", d=f"M{legend} {at}h22", **look))
        marks.append(_text(legend + 28, at + 4, label))
    drawing = _picture(
        FIGURE.width, FIGURE.height, title, marks, xmlns="http://www.w3.org/2000/svg",
        font_family="sans-serif", font_size="12", fill="#222",
    )  # fmt: skip
    return drawing + "\n"
