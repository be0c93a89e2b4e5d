# SPDX-License-Identifier: Apache-2.0
from xml.etree import ElementTree

import pytest

from host.drawing import (
    FIGURE,
    Axis,
    amount_chart,
    axis_ticks,
    bar_chart,
    figure,
    line_chart,
    share_chart,
)

SVG = "{http://www.w3.org/2000/svg}"


def example(ys, **more):
    points = [(2**n, y) for n, y in enumerate(ys)]
    return figure(
        [("a < b", points), ("none", [])], title="A & B", x_label="x", y_label="y", **more
    )


def test_the_same_numbers_give_the_same_bytes_and_others_do_not():
    assert example([1.0, 5.0, 9.0]) == example([1.0, 5.0, 9.0])
    assert example([1.0, 5.0, 9.0]) != example([1.0, 5.5, 9.0])


@pytest.mark.parametrize("log_y", [False, True])
def test_every_point_is_a_mark_inside_the_frame_and_larger_is_higher(log_y):
    tree = ElementTree.fromstring(example([3.0, 40.0, 900.0], log=(True, log_y)))
    marks = tree.findall(f"{SVG}circle")
    heights = [float(mark.get("cy")) for mark in marks]
    assert len(marks) == 3
    assert heights == sorted(heights, reverse=True)
    assert all(FIGURE.top <= y <= FIGURE.ends[1] for y in heights)
    assert "a < b: 2, 40" in [mark.find(f"{SVG}title").text for mark in marks]


def test_equal_ratios_have_equal_lengths_on_a_logarithmic_axis():
    axis = Axis([1e-6, 1e-1], 0, 100, log=True)
    assert axis.place(1e-4) - axis.place(1e-5) == pytest.approx(20)
    assert len(axis.ticks) == 6


@pytest.mark.parametrize("high", [0.5, 1, 7, 99, 1_234_567])
def test_axis_ticks_reach_beyond_the_greatest_value(high):
    ticks = axis_ticks(high)
    assert ticks[0] == 0
    assert ticks[-1] >= high
    assert 3 <= len(ticks) <= 7


WORDS = {"title": "A & B", "x_label": "x < 1", "y_label": "y"}
DRAWINGS = {
    "line": line_chart([(0, 1), (2, 4)], **WORDS),
    "no line": line_chart([], **WORDS),
    "bars": bar_chart([(0, 1, 5), (1, 2, 1)], markers=[(1, "median"), (2, "most")], **WORDS),
    "shares": share_chart([("a & b", (("busy", 3), ("idle", 1)))], title="A & B"),
    "amounts": amount_chart([("a & b", 2.0, "2 s"), ("c", 0.0, "0 s")], title="A & B"),
    "figure": example([1, 2]),
}


@pytest.mark.parametrize("drawing", DRAWINGS.values(), ids=DRAWINGS)
def test_a_drawing_is_as_wide_as_its_place_and_says_what_it_is(drawing):
    tree = ElementTree.fromstring(drawing)
    assert tree.get("aria-label") == "A & B"
    left, top, width, height = map(int, tree.get("viewBox").split())
    assert (left, top) == (0, 0)
    assert {"width", "height"}.isdisjoint(tree.attrib)
    for mark in tree.iter():
        for name, most in (("x", width), ("y", height), ("cx", width), ("cy", height)):
            assert 0 <= float(mark.get(name, 0)) <= most


def test_every_value_can_be_read_where_the_pointer_rests():
    said = [one.text for one in ElementTree.fromstring(DRAWINGS["bars"]).iter("title")]
    assert said == ["0 to 1 x < 1: 5 y", "1 to 2 x < 1: 1 y"]
    exact = ElementTree.fromstring(line_chart([(1_234_567, 250_000)], **WORDS)).iter("title")
    assert [one.text for one in exact] == ["1,234,567 x < 1: 250 k y"]
