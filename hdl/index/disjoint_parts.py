# SPDX-License-Identifier: Apache-2.0
"""Keep the fields' parts of a bucket number disjoint, whatever the host requests.

A probe visits each cell once, and at most as many cells as there are buckets, only if no bit of the
bucket number belongs to two fields and no part exceeds the number. Otherwise the visits of a probe
could take years and repeat the same pairs, and CLEAR would not be executed before they had ended.
"""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import data

from hdl.words.inputs import Control, InputKind, coordinate_layout

__all__ = ["elaborate_disjoint", "wanted_bits", "wanted_layout"]


def wanted_layout(parameters):
    """Layout of a request: ``bits`` of a bucket number, and whether the part ``fits`` into it."""
    return data.StructLayout({"bits": parameters.bucket_width, "fits": 1})


def wanted_bits(parameters, word):
    """Return what a COORDINATE word requests, in the layout of :func:`wanted_layout`."""
    part = part_in(parameters, word)
    bits = parameters.bucket_width
    mask = ((1 << part.width) - 1) << part.place
    return Cat(mask[:bits], part.place + part.width <= bits)


def elaborate_disjoint(m, parameters, wanted, word, transfer):
    """Grant the part of a COORDINATE word all the bits that it requests, or none.

    The part gets no bits if it does not fit into the bucket number, or if another field owns one of
    the bits. The bits that the field owned before are released in either case.

    Parameters
    ----------
    m : Module
    parameters : JoinParameters
        Parameters of the accelerator.
    wanted : View
        Result of :func:`wanted_bits` for the word, from the previous cycle.
    word : View
        The word. A combinational assignment sets the width of a refused part to zero.
    transfer : Value
        The word is transferred in this cycle.
    """
    control = word.body.control
    is_coordinate = (word.kind == InputKind.CONTROL) & (control.op == Control.COORDINATE)
    fields = range(len(parameters.keys))
    taken = [Signal(parameters.bucket_width, name=f"taken_{n}") for n in fields]
    overlaps = Signal()
    m.d.comb += overlaps.eq(
        reduce(
            or_,
            ((control.index != n) & (bits & wanted.bits).any() for n, bits in enumerate(taken)),
        )
    )
    refused = overlaps | ~wanted.fits
    with m.If(is_coordinate & refused):
        m.d.comb += part_in(parameters, word).width.eq(0)
    for n, bits in enumerate(taken):
        with m.If(transfer & is_coordinate & (control.index == n)):
            m.d.sync += bits.eq(Mux(refused, 0, wanted.bits))


def part_in(parameters, word):
    """Return the part that a COORDINATE word carries as its value."""
    layout = coordinate_layout(parameters)
    return data.View(layout, Value.cast(word.body.control.value)[: layout.size])
