# SPDX-License-Identifier: Apache-2.0
"""The parts that fields take in a bucket's number, kept apart whatever a host asks for.

A probe visits every cell once, and as many as there are buckets at most, only if no bit of the
number belongs to two fields and no part reaches beyond the number. Otherwise its visits could take
years, with the same pairs again and again, and CLEAR is not executed before they have ended.
"""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import data

from hdl.words.inputs import Control, InputKind, coordinate_layout

__all__ = ["elaborate_disjoint", "wanted_bits", "wanted_layout"]


def wanted_layout(parameters):
    """Which ``bits`` of a bucket's number a part takes, and whether it ``fits`` into the number."""
    return data.StructLayout({"bits": parameters.bucket_width, "fits": 1})


def wanted_bits(parameters, word):
    """Return what a COORDINATE word wants, as :func:`wanted_layout` has it."""
    part = part_in(parameters, word)
    bits = parameters.bucket_width
    mask = ((1 << part.width) - 1) << part.place
    return Cat(mask[:bits], part.place + part.width <= bits)


def elaborate_disjoint(m, parameters, wanted, word, transfer):
    """Let a COORDINATE word's part have all the bits that it wants, or none.

    It has none if it does not fit into the number, or if another field has one of these bits. What
    its field had before is free in both cases.

    Parameters
    ----------
    m : Module
    parameters : JoinParameters
        Of the accelerator.
    wanted : View
        What :func:`wanted_bits` said of the word, a cycle ago.
    word : View
        The word; its part gets the width zero, by a combinational assignment.
    transfer : Value
        The word is taken.
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
    """Return the part that a COORDINATE word has as its value."""
    layout = coordinate_layout(parameters)
    return data.View(layout, Value.cast(word.body.control.value)[: layout.size])
