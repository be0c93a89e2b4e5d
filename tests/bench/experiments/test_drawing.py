# SPDX-License-Identifier: Apache-2.0
from xml.etree import ElementTree

import pytest

from bench.experiments.catalogue import plots
from bench.experiments.drawing import LEFT, RIGHT, WIDTH, Axis, draw
from bench.experiments.figure import Plot, Series
from bench.experiments.point import Point

SVG = "{http://www.w3.org/2000/svg}"


def example(ys, **more):
    points = tuple((2**n, Point("sj-2", 16, interval=n)) for n in range(len(ys)))
    found = {point: {"visiting": y} for (_, point), y in zip(points, ys, strict=True)}
    series = (Series("a < b", points, "visiting"),)
    return Plot("1", "A & B", "x", "y", "none", series, **more), found


def test_the_same_numbers_give_the_same_bytes_and_others_do_not():
    assert draw(*example([1.0, 5.0, 9.0])) == draw(*example([1.0, 5.0, 9.0]))
    assert draw(*example([1.0, 5.0, 9.0])) != draw(*example([1.0, 5.5, 9.0]))


@pytest.mark.parametrize("log_y", [False, True])
def test_every_point_is_a_mark_inside_the_frame_and_larger_is_higher(log_y):
    tree = ElementTree.fromstring(draw(*example([3.0, 40.0, 900.0], log_y=log_y)))
    marks = tree.findall(f"{SVG}circle")
    heights = [float(mark.get("cy")) for mark in marks]
    assert len(marks) == 3
    assert heights == sorted(heights, reverse=True)
    assert all(44 <= y <= 336 for y in heights)
    assert "a < b: 2, 40" in [mark.find(f"{SVG}title").text for mark in marks]


def test_a_quantity_that_is_unknown_is_left_out():
    plot, found = example([3.0, None, 900.0])
    assert draw(plot, found).count("<circle") == 2


def test_equal_ratios_have_equal_lengths_on_a_logarithmic_axis():
    axis = Axis([1e-6, 1e-1], 0, 100, True)
    assert axis.place(1e-4) - axis.place(1e-5) == pytest.approx(20)
    assert len(axis.ticks) == 6


def test_every_text_of_the_figures_fits_its_place():
    """A letter is wider than 7 pixels at size 12 in few fonts, and then in few words."""
    for plot in plots().values():
        for series in plot.series:
            assert 44 + 7 * len(series.label) <= RIGHT, series.label
        assert LEFT + 5.9 * len(plot.conditions) <= WIDTH, plot.conditions
