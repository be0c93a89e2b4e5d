# SPDX-License-Identifier: Apache-2.0
"""A band whose passes compare cells in place of keys: their layouts, and their hardware."""

from dataclasses import dataclass
from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.ecp5 import ONE, elaborate_luts, is_ecp5
from hdl.streams.registers import SteadyRegister, steady
from hdl.words.inputs import Control, InputKind
from hdl.words.prepared import region_word, stored_layout

from .band import Band, field_ranges
from .rule import Comparator

__all__ = [
    "CellComparator",
    "Cells",
    "DigestPreparation",
    "DoubleCells",
    "cell_layout",
    "chain",
    "digest_parts",
    "double_cells",
    "double_cells_layout",
    "probe_digest",
]


def digest_parts(parameters):
    """Return the width of each part of a band digest.

    There are as many parts as key fields, as equally wide as possible. A part holds the lowest bits
    of a cell number. Control words say of which field, and how wide its cells are
    (:func:`cell_layout`).
    """
    count = len(parameters.keys)
    least, wider = divmod(parameters.engine.digest_bits, count)
    return [least + (n < wider) for n in range(count)]


def cell_layout(parameters):
    """Return the layout of the value of CELL: what a part of the digest is made of.

    The cell number is the value of key field ``field``, without sign, shifted right by ``shift``.
    A field that does not exist has the value zero.
    """
    most = max(key.bits for key in parameters.keys)
    return data.StructLayout({"shift": range(most + 1), "field": range(len(parameters.keys))})


def double_cells_layout(widths):
    """Return the layout of the double cells that the parts of a stored digest lie in.

    Two neighbouring cells form a double cell, in the even grid those that begin with an even cell,
    in the odd grid all others. ``even`` and ``odd`` hold the lowest bits of the numbers of the
    double cells, one below the other for all parts.
    """
    bits = sum(widths) - len(widths)
    return data.StructLayout({"even": bits, "odd": bits})


def double_cells(cell):
    """Return the numbers of the double cells that a cell lies in, in the even and the odd grid.

    Both numbers have a bit less than the cell number, and wrap around with it.
    """
    return cell[1:], (cell + 1)[1 : len(cell)]


def probe_digest(first_cells):
    """Return the digest of a probe whose range begins in these cells, one for each part.

    The probe takes the grid in which its first cell begins a double cell: the even grid for an even
    cell, the odd one for an odd cell. From the lowest bit up, the digest holds the grid of each
    part, and then the numbers of the double cells, one below the other.
    """
    grids, doubles = [], []
    for cell in first_cells:
        even, odd = double_cells(cell)
        grids.append(cell[0])
        doubles.append(Mux(cell[0], odd, even))
    return Cat(*grids, *doubles)


#: Table of a LUT that passes the carry on if C is the one of A and B that D chooses: A for 0.
CHOSEN = sum(1 << n for n in range(16) if (n >> 1 if n & 8 else n) & 1 == n >> 2 & 1)


class CellComparator(wiring.Component):
    """Compare the cells of a stored key with those of a probe, and say whether the key may match.

    A range that is no wider than a cell meets the cell in which it begins, and perhaps the next
    one. These two are one double cell of the even or of the odd grid (:func:`double_cells_layout`).
    The probe brings the grid and the number of the double cell, so one comparison for equality
    tells whether the key lies in either cell.

    On an ECP5 the comparator is a carry chain with one LUT per compared bit, one that starts the
    carry, and one that brings it out. The LUT of a bit also chooses the grid.

    Latency: 1 cycle. Throughput: 1 comparison per cycle.

    Parameters
    ----------
    widths : list of int
        Bits of a cell number in each part of the digest, at least two each.

    Members
    -------
    criterion : In(wiring.Signature({"digest": Out(sum(widths))}))
        From the lowest bit up: for each part the grid, 1 for the odd one; then the numbers of the
        double cells, one below the other.
    key : In(double_cells_layout(widths))
    match : Out(1)
        The key lies, in all parts, in the double cell of the probe.
    """

    def __init__(self, widths):
        if not widths or min(widths) < 2:
            raise ValueError(
                f"Each part of a band digest must have at least 2 bits, not {widths!r}"
            )
        self.widths = list(widths)
        self.latency = 1
        digest = wiring.Signature({"digest": Out(sum(widths))})
        super().__init__(
            {"criterion": In(digest), "key": In(double_cells_layout(widths)), "match": Out(1)}
        )

    def elaborate(self, platform):
        m = Module()
        digest, parts = self.criterion.digest, len(self.widths)
        # The grid of each compared bit.
        grids = Cat(digest[n].replicate(width - 1) for n, width in enumerate(self.widths))
        double = digest[parts:]
        even, odd = self.key.even, self.key.odd
        match = Signal(reset_less=True)
        m.d.comb += self.match.eq(match)
        if is_ecp5(platform):
            holds = Signal()
            elaborate_luts(m, chain(even, odd, double, grids, holds))
            m.d.sync += match.eq(holds)
        else:
            chosen = Signal.like(even)
            m.d.comb += chosen.eq(even ^ ((even ^ odd) & grids))
            m.d.sync += match.eq(chosen == double)
        return m


def chain(even, odd, double, grids, holds):
    """Return the LUTs of the carry chain, as :func:`elaborate_luts` takes them."""
    ones = Const(-1, 4)
    bits = zip(even, odd, double, grids, strict=True)
    return [
        (ONE, "NO", ones, None),
        *((CHOSEN, "YES", inputs, None) for inputs in bits),
        (0, "NO", ones, holds),  # the sum is zero plus the carry
    ]


class DoubleCells(wiring.Component):
    """Turn the cells of every lane into the double cells that they lie in, in both grids.

    The key ring stores cells, which are half as wide. Each lane adds one to its cells here, and all
    comparators of the lane use the sum.

    Latency: :attr:`LATENCY` cycle. Throughput: 1 row per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; a band with digests.

    Members
    -------
    cells : In
        Digests of a row, as read from a :class:`hdl.scan.ring.KeyRing`.
    doubles : Out
        Their double cells.
    """

    LATENCY = 1

    def __init__(self, parameters):
        self.parameters = parameters
        self.widths = digest_parts(parameters)
        self.latency = self.LATENCY
        doubles = double_cells_layout(self.widths)
        super().__init__(
            {
                "cells": In(
                    data.ArrayLayout(stored_layout(parameters.scanned), parameters.engine.lanes)
                ),
                "doubles": Out(data.ArrayLayout(doubles, parameters.engine.lanes)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for lane in range(self.parameters.engine.lanes):
            digest, first = self.cells[lane].digest, 0
            parts = []
            for width in self.widths:
                parts.append(double_cells(digest[first : first + width]))
                first += width
            even, odd = zip(*parts, strict=True)
            doubles = Signal(self.doubles[lane].shape(), name=f"doubles_{lane}", reset_less=True)
            m.d.sync += [doubles.even.eq(Cat(even)), doubles.odd.eq(Cat(odd))]
            m.d.comb += self.doubles[lane].eq(doubles)
        return m


#: What has a cell number: the key, and both ends of the probe's range.
VALUES = ("key", "low", "high")


class DigestPreparation(wiring.Component):
    """Compute the digest of a tuple that is stored, and its digest as a probe.

    CELL words say which field each part of the digest is made of, and how wide its cells are
    (:func:`cell_layout`). After reset, all parts have the first field in cells of
    one value. The registers of a stage follow the words that pass it, so every tuple has the cells
    of the last CELL word before it.

    A range that meets more than two cells of any part sets ``every``: a pass cannot tell which keys
    may match. An empty range may have any digest.

    Latency: 3 cycles: to choose the fields, to shift them, and to combine the cells. Throughput: 1
    word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; a band with digests.

    Members
    -------
    i : In(steady(region_word(parameters)))
        Words without digests.
    o : Out(steady(region_word(parameters)))
        The same words with digests.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.widths = digest_parts(parameters)
        self.latency = 3
        word = region_word(parameters)
        super().__init__({"i": In(steady(word)), "o": Out(steady(word))})

    def elaborate(self, platform):
        m = Module()
        word = region_word(self.parameters)
        most = max(*self.widths, *(key.bits for key in self.parameters.keys))
        values = data.StructLayout(dict.fromkeys(VALUES, most))
        staged = data.StructLayout(
            {"word": word, "parts": data.ArrayLayout(values, len(self.widths))}
        )
        m.submodules.chosen = chosen = SteadyRegister(staged)
        m.submodules.shifted = shifted = SteadyRegister(staged)
        m.submodules.output = output = SteadyRegister(word)
        connect(m, output.o, flipped(self.o))
        m.d.comb += [
            chosen.i.valid.eq(self.i.valid),
            chosen.i.payload.word.eq(self.i.payload),
            shifted.i.valid.eq(chosen.o.valid),
            shifted.i.payload.word.eq(chosen.o.payload.word),
            output.i.valid.eq(shifted.o.valid),
            output.i.payload.eq(shifted.o.payload.word),
        ]
        for n, _ in enumerate(self.widths):
            field = self.elaborate_cell(m, n, self.i, self.i.payload, "field")
            shift = self.elaborate_cell(m, n, chosen.o, chosen.o.payload.word, "shift")
            self.choose_field(m, field, chosen.i.payload.parts[n])
            for name in VALUES:
                value = chosen.o.payload.parts[n][name]
                m.d.comb += shifted.i.payload.parts[n][name].eq(value >> shift)
        self.elaborate_digests(m, shifted.o.payload.parts, output.i.payload)
        return m

    def elaborate_cell(self, m, n, words, word, name):
        """Return what CELL words said last of a part, in the pipeline stage of ``words``."""
        layout = cell_layout(self.parameters)
        setting = Signal(layout[name].shape, name=f"{name}_{n}")
        control = word.body.control
        transfer = words.valid & (word.kind == InputKind.CONTROL)
        with m.If(transfer & (control.op == Control.CELL) & (control.index == n)):
            m.d.sync += setting.eq(data.View(layout, control.value[: layout.size])[name])
        return setting

    def choose_field(self, m, field, values):
        """Take key and range of the field with this number; zeros if there is none."""
        prepared = self.i.payload.body.tuple
        ranges = field_ranges(self.parameters, prepared.criterion)
        for name in VALUES:
            fields = []
            for n, key in enumerate(self.parameters.keys):
                low, high = ranges[key.name]
                value = {"key": prepared.key[key.name], "low": low, "high": high}[name]
                fields.append(Mux(field == n, value, 0))
            m.d.comb += values[name].eq(reduce(or_, fields))

    def elaborate_digests(self, m, parts, word):
        """Combine the cells of all parts into digests, and find ranges that are too wide."""
        stored, first, wide = [], [], []
        for n, width in enumerate(self.widths):
            cells = parts[n]
            stored.append(cells.key[:width])
            first.append(cells.low[:width])
            wide.append(cells.high > cells.low + 1)
        prepared = word.body.tuple
        with m.If(word.kind != InputKind.CONTROL):
            m.d.comb += [
                prepared.key.digest.eq(Cat(stored)),
                prepared.criterion.digest.eq(probe_digest(first)),
                prepared.criterion.every.eq(Cat(wide).any()),
            ]


@dataclass(frozen=True, kw_only=True)
class Cells(Band):
    """A band whose passes compare cells (:func:`cell_layout`).

    A stored key has its ``digest`` beside its fields: the lowest bits of the cell numbers, one part
    below the other. A probe has its ``digest`` (:func:`probe_digest`), and ``every``: a range is
    wider than its cells, so any key may match.
    """

    restarts = (Control.CELL,)
    #: Cycles from the digests of a row to what the comparators get.
    row_latency = DoubleCells.LATENCY

    def operations(self, parameters):
        return {Control.CELL: len(digest_parts(parameters))}

    def operands(self, parameters):
        return [cell_layout(parameters)]

    def described(self, parameters):
        parts = {"parts": digest_parts(parameters), "cell": cell_layout(parameters)}
        return {"digests": parts}

    def verified_layouts(self, parameters):
        """Return the layouts of what a verifier compares: a key and a criterion without digest."""
        return super().stored_layout(parameters), super().criterion_layout(parameters)

    def stored_layout(self, parameters):
        fields = {name: field.shape for name, field in super().stored_layout(parameters)}
        return data.StructLayout({"digest": parameters.engine.digest_bits, **fields})

    def criterion_layout(self, parameters):
        ranges = {name: field.shape for name, field in super().criterion_layout(parameters)}
        return data.StructLayout({"digest": parameters.engine.digest_bits, "every": 1, **ranges})

    def preparation(self, parameters):
        return {"digests": DigestPreparation(parameters)}

    def digest_comparator(self, parameters):
        """Return a comparator of digests."""
        return CellComparator(digest_parts(parameters))

    def row_preparation(self, parameters):
        """Return what prepares the digests of a row for these comparators."""
        return DoubleCells(parameters)

    def verify(self, m, parameters, key, criterion):
        """Return in parts whether a whole key matches: parts of now, and of a cycle later."""
        m.submodules.band = band = Comparator(parameters.whole, probe_side=0)
        m.d.comb += Value.cast(band.key).eq(key)
        for name, _ in criterion.shape():
            m.d.comb += getattr(band.criterion, name).eq(criterion[name])
        return [], [band.match]
