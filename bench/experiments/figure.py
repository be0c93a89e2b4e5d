# SPDX-License-Identifier: Apache-2.0
"""A figure as data: axes, and series of points with the quantity that is drawn."""

from dataclasses import dataclass

from host.drawing import figure

from .point import Point

__all__ = ["QUANTITIES", "Plot", "Series", "draw"]


def named(name):
    """Return a function that reads a measured value."""
    return lambda point, measured: measured.get(name)


#: What can be drawn, as functions of a point and what was measured there.
QUANTITIES = {
    "tuples per 1,000 cycles": lambda point, measured: 1000 / measured["cycles_per_tuple"],
    "cycles per tuple": named("cycles_per_tuple"),
    "pairs decided per cycle": lambda point, measured: (
        measured["comparisons_per_tuple"] / measured["cycles_per_tuple"]
    ),
    "visiting": named("visiting"),
    "processing": named("processing"),
    "read per core": lambda point, measured: (
        measured["region_busy_per_tuple"] / int(point.accelerator.rpartition("-")[2])
    ),
}


@dataclass(frozen=True)
class Series:
    """One line of a figure.

    Parameters
    ----------
    label : str
        What the legend says.
    points : tuple of (float, Point)
        Place on the x axis, and the point that is measured there.
    quantity : str
        Name in :data:`QUANTITIES`.
    """

    label: str
    points: tuple[tuple[float, Point], ...]
    quantity: str


@dataclass(frozen=True)
class Plot:
    """A figure.

    Parameters
    ----------
    name : str
        Number of the paper's figure, or a name of its own.
    title, x_label, y_label, conditions : str
        Texts; the conditions stand below the drawing and in the CSV file.
    series : tuple of Series
        The lines.
    log_x, log_y : bool
        Whether an axis is logarithmic.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    conditions: str
    series: tuple[Series, ...]
    log_x: bool = True
    log_y: bool = False

    @property
    def points(self):
        """All points of the figure."""
        return [point for series in self.series for _, point in series.points]

    def lines(self, found):
        """Return label and (x, y) of each series; a point without the quantity is left out."""
        return [
            (
                series.label,
                [
                    (x, value)
                    for x, point in series.points
                    if (value := QUANTITIES[series.quantity](point, found[point])) is not None
                ],
            )
            for series in self.series
        ]


def draw(plot, found):
    """Return a figure as SVG.

    Parameters
    ----------
    plot : Plot
        The figure, or one with the same texts and lines.
    found : dict
        What was measured at each of its points.
    """
    return figure(
        plot.lines(found), title=plot.title, x_label=plot.x_label, y_label=plot.y_label,
        conditions=plot.conditions, log=(plot.log_x, plot.log_y),
    )  # fmt: skip
