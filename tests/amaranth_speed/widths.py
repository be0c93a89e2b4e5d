# SPDX-License-Identifier: Apache-2.0
"""Widths of Amaranth's layouts, computed once for each layout instead of at each use.

Amaranth adds the widths of all fields, those of nested layouts included, whenever a layout is used
as a shape. That is a tenth of the processor's time of tests that elaborate and simulate
components. The layouts concerned cannot be changed once they are made.
"""

from amaranth.lib import data

__all__ = ["keep_widths"]


def keep_widths(monkeypatch):
    """Let fields and layouts remember the widths that Amaranth computes for them.

    Parameters
    ----------
    monkeypatch : pytest.MonkeyPatch
        Undoes it.
    """
    monkeypatch.setattr(data.Field, "width", kept(data.Field.width))
    for layout in (data.StructLayout, data.UnionLayout, data.ArrayLayout):
        monkeypatch.setattr(layout, "size", kept(layout.size))


def kept(computed):
    """Return a property with the value that the property ``computed`` has at its first use."""
    name = f"kept_{computed.fget.__name__}"

    def value(self):
        known = self.__dict__
        if name not in known:
            known[name] = computed.fget(self)
        return known[name]

    return property(value, doc=computed.__doc__)
