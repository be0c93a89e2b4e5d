# SPDX-License-Identifier: Apache-2.0
from amaranth.lib import data

from tests.amaranth_speed.widths import keep_widths


def layouts():
    inner = data.StructLayout({"a": 3, "b": range(5), "c": data.ArrayLayout(2, 3)})
    union = data.UnionLayout({"a": inner, "b": 20})
    return inner, union, data.StructLayout({"x": union, "y": data.ArrayLayout(inner, 5)})


def widths(layout):
    return layout.size, [(key, field.offset, field.width) for key, field in layout]


def test_layouts_have_the_widths_that_they_had_and_are_equal_as_they_were():
    inner = (12, [("a", 0, 3), ("b", 3, 3), ("c", 6, 6)])
    union = (20, [("a", 0, 12), ("b", 0, 20)])
    expected = [inner, union, (80, [("x", 0, 20), ("y", 20, 60)])]
    kept = layouts()
    for _ in range(2):
        assert [widths(layout) for layout in kept] == expected
    assert kept == layouts()
    assert len({*kept, *layouts()}) == 3
    assert kept[0] != data.StructLayout({"a": 4, "b": range(5), "c": data.ArrayLayout(2, 3)})


def test_a_width_is_computed_once_for_each_layout(monkeypatch):
    computed = []

    class Layout:
        @property
        def size(self):
            computed.append(self)
            return 7

    monkeypatch.setattr(data, "StructLayout", Layout)
    keep_widths(monkeypatch)
    one, other = Layout(), Layout()
    assert [one.size, other.size, one.size, other.size] == [7] * 4
    assert computed == [one, other]
