# SPDX-License-Identifier: Apache-2.0
"""The cells that a probe visits, counted through one by one."""

from amaranth import *

from hdl.words.inputs import Control, coordinate_layout

__all__ = ["visited_cells"]


def visited_cells(m, parameters, probe, step, *, configure, control):
    """Count through the cells of a probe, like through the digits of a number.

    The first field counts fastest; each wraps around within its bits.

    Parameters
    ----------
    m : Module
    parameters : JoinParameters
        Of the accelerator.
    probe : View
        A :func:`hdl.index.layouts.visiting_layout`.
    step : Value
        The cell at hand is visited.
    configure, control : Value
        As every engine gets them.

    Returns
    -------
    tuple of Value
        The bucket to visit, whether it is the probe's last, and whether it has none.
    """
    if parameters.comparator != "band":
        return probe.bucket, Const(1), Const(0)
    cells = probe.cells
    fresh = Signal(init=1)  # this is the probe's first cell
    place = Signal.like(cells.start, reset_less=True)
    now = Mux(fresh, cells.start, place)
    following = now
    carry = Const(1)  # all fields before this one are at their last value
    for n, _ in enumerate(parameters.keys):
        mask, unit = digit(m, parameters, n, configure=configure, control=control)
        extent = cells[f"extent_{n}"]
        rest = Signal.like(extent, name=f"rest_{n}", reset_less=True)
        left = Mux(fresh, extent, rest)
        ended = Signal(name=f"ended_{n}")
        m.d.comb += ended.eq(left == 0)
        stepped = Mux(ended, cells.start, now + unit)[: len(mask)]
        following = Mux(carry, (following & ~mask) | (stepped & mask), following)
        with m.If(step & carry):
            m.d.sync += rest.eq(Mux(ended, extent, left - 1))
        with m.Elif(step & fresh):
            m.d.sync += rest.eq(extent)
        carry &= ended
    with m.If(step):
        m.d.sync += [place.eq(following), fresh.eq(carry | cells.none)]
    return now ^ cells.hash, carry | cells.none, cells.none


def digit(m, parameters, n, *, configure, control):
    """Keep which bits of a bucket's number belong to a field, and the lowest of them."""
    bits = parameters.bucket_width
    mask = Signal(bits, name=f"mask_{n}")
    unit = Signal(bits, name=f"unit_{n}")
    part = Signal(coordinate_layout(parameters), name=f"part_{n}")
    mine = (control.op == Control.COORDINATE) & (control.index == n)
    m.d.comb += part.as_value().eq(control.value)
    with m.If(configure & mine):
        m.d.sync += [
            mask.eq(((1 << part.width) - 1) << part.place),
            unit.eq(1 << part.place),
        ]
    return mask, unit
