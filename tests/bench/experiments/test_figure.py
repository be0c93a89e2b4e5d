# SPDX-License-Identifier: Apache-2.0
from bench.experiments.catalogue import Plot, Series, plots
from bench.experiments.commands import draw
from bench.experiments.joins import Point
from host.drawing import FIGURE


def test_a_quantity_that_is_unknown_is_left_out():
    points = tuple((2**n, Point("sj-2", 16, interval=n)) for n in range(3))
    found = dict(zip((point for _, point in points), [3.0, None, 900.0], strict=True))
    plot = Plot("1", "A", "x", "y", "none", (Series("a", points, "visiting"),))
    assert draw(plot, {each: {"visiting": y} for each, y in found.items()}).count("<circle") == 2


def test_every_text_of_the_figures_fits_its_place():
    """A letter is wider than 7 pixels at size 12 in few fonts, and then in few words."""
    for plot in plots().values():
        for series in plot.series:
            assert 44 + 7 * len(series.label) <= FIGURE.right, series.label
        assert FIGURE.left + 5.9 * len(plot.conditions) <= FIGURE.width, plot.conditions
