# SPDX-License-Identifier: Apache-2.0
"""Digest computation for a band, done once for all regions: the cells of keys and of probes."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.streams.steady import SteadyRegister, steady
from hdl.words.cells import cell_layout, digest_parts, probe_digest
from hdl.words.inputs import Control, InputKind
from hdl.words.prepared import field_ranges, region_word

__all__ = ["DigestPreparation"]

#: What has a cell number: the key, and both ends of the probe's range.
VALUES = ("key", "low", "high")


class DigestPreparation(wiring.Component):
    """Compute the digest of a tuple that is stored, and its digest as a probe.

    CELL words say which field each part of the digest is made of, and how wide its cells are
    (:func:`hdl.words.cells.cell_layout`). After reset, all parts have the first field in cells of
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
