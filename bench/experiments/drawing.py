# SPDX-License-Identifier: Apache-2.0
"""Draw a figure as SVG text: the same numbers give the same bytes.

The drawing has its own background, so it reads on a white page and on a black one.
"""

from html import escape
import math

__all__ = ["draw"]

#: On the right is the legend, which has room for the longest label.
WIDTH, HEIGHT = 830, 420
LEFT, RIGHT, TOP, BOTTOM = 76, 300, 44, 84
#: Colours that are told apart with any kind of colour blindness (Okabe and Ito), then dashed.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")


class Axis:
    """Scale of one axis.

    Parameters
    ----------
    values : list of float
        Values that must have a place.
    low, high : float
        Ends in the drawing.
    log : bool
        Whether equal ratios have equal lengths.
    """

    def __init__(self, values, low, high, log):
        self.log = log
        if log:
            self.base = 2.0 if max(values) / min(values) < 5_000 and min(values) >= 1 else 10.0
            first = math.floor(math.log(min(values), self.base) + 1e-9)
            last = math.ceil(math.log(max(values), self.base) - 1e-9)
            last = max(last, first + 1)
            step = max(1, -(-(last - first) // 10))
            self.ticks = [self.base**n for n in range(first, last + 1, step)]
            self.ends = math.log(self.base**first), math.log(self.base**last)
        else:
            rough = (max(values) or 1.0) / 5
            power = 10.0 ** math.floor(math.log10(rough))
            step = next(power * n for n in (1, 2, 5, 10) if power * n >= rough)
            self.ticks = [step * n for n in range(math.ceil(max(values) / step - 1e-9) + 1)]
            self.ends = 0.0, self.ticks[-1]
        self.low, self.high = low, high

    def place(self, value):
        """Return where a value is."""
        value = math.log(value) if self.log else value
        share = (value - self.ends[0]) / (self.ends[1] - self.ends[0])
        return self.low + (self.high - self.low) * share


def number(value):
    """Write a number of an axis."""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.4g}"


def text(x, y, what, *, anchor="middle", size=12, more=""):
    """Return a text element."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{more}>'
        f"{escape(what)}</text>"
    )


def grid(x, y):
    """Return lines and numbers of both axes."""
    marks = []
    for tick in y.ticks:
        place = y.place(tick)
        marks.append(f'<path d="M{LEFT} {place:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        marks.append(text(LEFT - 8, place + 4, number(tick), anchor="end"))
    for tick in x.ticks:
        place = x.place(tick)
        marks.append(f'<path d="M{place:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>')
        marks.append(text(place, HEIGHT - BOTTOM + 18, number(tick)))
    return marks


def line(index, label, points, x, y):
    """Return the marks of one series, and its entry in the legend."""
    colour = COLOURS[index % len(COLOURS)]
    dash = ' stroke-dasharray="6 4"' if index >= len(COLOURS) else ""
    places = [(x.place(a), y.place(b)) for a, b in points]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    marks = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>']
    for (a, b), (px, py) in zip(points, places, strict=True):
        marks.append(
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3.5" fill="{colour}">'
            f"<title>{escape(label)}: {number(a)}, {b:,.4g}</title></circle>"
        )
    at, legend = TOP + 8 + 20 * index, WIDTH - RIGHT + 16
    marks.append(f'<path d="M{legend} {at}h22" stroke="{colour}" stroke-width="2"{dash}/>')
    marks.append(text(legend + 28, at + 4, label, anchor="start"))
    return marks


def draw(plot, found):
    """Return a figure as SVG.

    Parameters
    ----------
    plot : Plot
        The figure.
    found : dict
        What was measured at each of its points.
    """
    lines = [(label, points) for label, points in plot.lines(found) if points]
    xs, ys = ([pair[n] for _, points in lines for pair in points] for n in range(2))
    x = Axis(xs, LEFT, WIDTH - RIGHT, plot.log_x)
    y = Axis(ys, HEIGHT - BOTTOM, TOP, plot.log_y)
    middle = (TOP + HEIGHT - BOTTOM) / 2
    marks = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        text(LEFT, 24, plot.title, anchor="start", size=15, more=' font-weight="bold"'),
        *grid(x, y),
        text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 40, plot.x_label, size=13),
        text(18, middle, plot.y_label, size=13, more=f' transform="rotate(-90 18 {middle:.1f})"'),
        text(LEFT, HEIGHT - 12, plot.conditions, anchor="start", size=11),
    ]
    for index, (label, points) in enumerate(lines):
        marks += line(index, label, points, x, y)
    body = "\n".join(marks)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(plot.title)}" font-family="sans-serif" fill="#222">\n{body}\n</svg>\n'
    )
