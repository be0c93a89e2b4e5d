# SPDX-License-Identifier: Apache-2.0
"""Buckets of a tuple, worked out once for all regions: where it is stored, and which it visits."""

from functools import reduce
from operator import or_, xor

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.streams.steady import SteadyRegister, steady
from hdl.words.inputs import Control, InputKind, coordinate_layout
from hdl.words.prepared import comparison_groups, region_word

from .bucket_hash import FieldHash, first_seed
from .disjoint_parts import elaborate_disjoint, wanted_bits, wanted_layout

__all__ = ["CellPreparation"]


class CellPreparation(wiring.Component):
    """Give every tuple the bucket that it is stored in and the buckets that it visits as a probe.

    For an equality both are one bucket, a hash of the key. For a band, control words say which part
    each field takes (:func:`hdl.words.inputs.coordinate_layout`); for both, they seed the hash
    (:class:`hdl.index.bucket_hash.FieldHash`). A field that has bits of its own
    in the bucket's number makes a grid: a probe visits all cells that its range touches, each once,
    for as many as there are values of these bits. The hash of a field is for bounds that are equal.
    A field without any part is only compared. A part that is not its field's alone, or reaches
    beyond the number, leaves as one of width zero (:mod:`hdl.index.disjoint_parts`).

    Latency: :attr:`latency` cycles. 1 to come to the multipliers, for a multiplication takes half
    of a cycle, and multipliers stand where the device has them: so the registers before them may
    stand there, too, and are nothing else. Then an equality takes 1 to multiply and 1 to add; a
    band 1 to shift and multiply, 1 to subtract, place and add, and 1 to limit. Throughput: 1 word
    per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    i : In(steady(region_word(parameters)))
        Without bucket and cells.
    o : Out(steady(region_word(parameters)))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.hashes = [FieldHash(parameters, n) for n, _ in enumerate(parameters.keys)]
        self.latency = 4 if parameters.comparator == "band" else 3
        word = region_word(parameters)
        super().__init__({"i": In(steady(word)), "o": Out(steady(word))})

    def elaborate(self, platform):
        m = Module()
        word = region_word(self.parameters)
        band = self.parameters.comparator == "band"
        m.submodules.output = output = SteadyRegister(word, gated=band)
        connect(m, output.o, flipped(self.o))
        m.submodules.near = near = SteadyRegister(word, gated=band)
        connect(m, flipped(self.i), near.i)
        if not band:
            self.elaborate_equality(m, near, output)
            return m

        coordinates, parts = self.layouts()
        wanted = wanted_layout(self.parameters)
        m.submodules.shifted = shifted = SteadyRegister(
            data.StructLayout({"word": word, "coordinates": coordinates, "wanted": wanted}),
            gated=True,
        )
        m.submodules.placed = placed = SteadyRegister(
            data.StructLayout({"word": word, "parts": parts}), gated=True
        )
        m.d.comb += [
            shifted.i.valid.eq(near.o.valid),
            placed.i.valid.eq(shifted.o.valid),
            output.i.valid.eq(placed.o.valid),
            shifted.i.payload.word.eq(near.o.payload),
            placed.i.payload.word.eq(shifted.o.payload.word),
            output.i.payload.eq(placed.o.payload.word),
        ]
        m.d.comb += shifted.i.payload.wanted.eq(wanted_bits(self.parameters, near.o.payload))
        elaborate_disjoint(
            m, self.parameters, shifted.o.payload.wanted, placed.i.payload.word, shifted.o.valid
        )  # fmt: skip
        ranges = self.ranges(near.o.payload.body.tuple.criterion)
        for n, field in enumerate(self.parameters.keys):
            low, high = ranges[field.name]
            values = {
                "key": near.o.payload.body.tuple.key[field.name],
                "low": low,
                "high": high,
            }
            self.shift_field(
                m, n, self.elaborate_part(m, n, near.o, near.o.payload, "shifted"), values,
                shifted.i.payload.coordinates[field.name],
            )  # fmt: skip
            self.place_field(
                m, n, self.elaborate_part(m, n, shifted.o, placed.i.payload.word, "placed"),
                shifted.o.payload.coordinates[field.name], placed.i.payload.parts[field.name],
            )  # fmt: skip
        self.elaborate_cells(m, placed.o.payload, output.i.payload)
        return m

    def layouts(self):
        """Return what is known of every field once it is shifted, and once it is placed."""
        bits = self.parameters.bucket_width
        coordinates, parts = {}, {}
        for n, field in enumerate(self.parameters.keys):
            whole = unsigned(field.bits)
            coordinates[field.name] = data.StructLayout(
                {
                    **dict.fromkeys(("key", "low", "high"), whole),
                    **dict.fromkeys(("key_products", "low_products"), self.hashes[n].layout),
                    "none": 1,
                }
            )
            parts[field.name] = data.StructLayout(
                {
                    **dict.fromkeys(("key", "low", "key_hash", "low_hash", "most"), bits),
                    "extent": whole,
                    "none": 1,
                }
            )
        return data.StructLayout(coordinates), data.StructLayout(parts)

    def elaborate_equality(self, m, near, output):
        """Multiply the key in one cycle, add in the next."""
        word = region_word(self.parameters)
        fields = [field.name for field in self.parameters.keys]
        layouts = zip(fields, (hash_.layout for hash_ in self.hashes), strict=True)
        m.submodules.multiplied = multiplied = SteadyRegister(
            data.StructLayout({"word": word, "products": data.StructLayout(dict(layouts))})
        )
        m.d.comb += [
            multiplied.i.valid.eq(near.o.valid),
            multiplied.i.payload.word.eq(near.o.payload),
            output.i.valid.eq(multiplied.o.valid),
            output.i.payload.eq(multiplied.o.payload.word),
        ]
        key, found = near.o.payload.body.tuple.key, multiplied.o.payload
        for n, (name, hash_) in enumerate(zip(fields, self.hashes, strict=True)):
            part = self.elaborate_part(m, n, near.o, near.o.payload, "multiplied")
            products = Value.cast(multiplied.i.payload.products[name])
            m.d.comb += products.eq(hash_.products(key[name], part.seed))
        totals = (
            hash_.total(found.products[name])
            for name, hash_ in zip(fields, self.hashes, strict=True)
        )
        with m.If(found.word.kind != InputKind.CONTROL):
            m.d.comb += output.i.payload.body.tuple.bucket.eq(reduce(xor, totals))

    def ranges(self, criterion):
        """Return the lowest and highest stored value of every field that a probe meets."""
        ranges = {}
        for n, group in enumerate(comparison_groups(self.parameters)):
            offset = 0
            for field in group:
                bits = slice(offset, offset + field.bits)
                ranges[field.name] = (criterion[f"low_{n}"][bits], criterion[f"high_{n}"][bits])
                offset += field.bits + 1
        return ranges

    def elaborate_part(self, m, n, words, word, stage):
        """Keep the part that a field takes, as a control word has set it on its way past here."""
        name = f"{self.parameters.keys[n].name}_{stage}"
        layout = coordinate_layout(self.parameters)
        part = Signal(layout, name=name, init={"seed": first_seed(n)})
        control = word.body.control
        transfer = words.valid & (word.kind == InputKind.CONTROL)
        with m.If(transfer & (control.op == Control.COORDINATE) & (control.index == n)):
            m.d.sync += part.as_value().eq(control.value)
        return part

    def shift_field(self, m, n, part, values, coordinates):
        """Shift: coordinates and products of a field's key and range; is the range empty?"""
        m.d.comb += [coordinates[name].eq(value >> part.shift) for name, value in values.items()]
        m.d.comb += coordinates.none.eq(values["low"] > values["high"])
        for name in ("key", "low"):
            products = Value.cast(coordinates[f"{name}_products"])
            m.d.comb += products.eq(self.hashes[n].products(values[name], part.seed))

    def place_field(self, m, n, part, coordinates, placed):
        """Place: put the coordinates where they belong, and see how far apart they are."""
        bits = self.parameters.bucket_width
        most = Signal(bits, name=f"most_{n}")  # of the coordinate's bits in use
        m.d.comb += most.eq((1 << part.width) - 1)
        hashed = part.hashed.replicate(bits)
        for name in ("key", "low"):
            m.d.comb += [
                placed[name].eq((coordinates[name] & most) << part.place),
                placed[f"{name}_hash"].eq(
                    self.hashes[n].total(coordinates[f"{name}_products"]) & hashed
                ),
            ]
        m.d.comb += [
            placed.most.eq(most),
            placed.extent.eq(coordinates.high - coordinates.low),
            placed.none.eq(coordinates.none),
        ]

    def elaborate_cells(self, m, placed, word):
        """Limit the number of cells, and put everything together."""
        parts = [placed.parts[field.name] for field in self.parameters.keys]
        prepared = word.body.tuple
        with m.If(word.kind != InputKind.CONTROL):
            m.d.comb += [
                prepared.bucket.eq(
                    reduce(or_, (part.key for part in parts))
                    ^ reduce(xor, (part.key_hash for part in parts))
                ),
                prepared.cells.start.eq(reduce(or_, (part.low for part in parts))),
                prepared.cells.hash.eq(reduce(xor, (part.low_hash for part in parts))),
                prepared.cells.none.eq(Cat(part.none for part in parts).any()),
            ]
            for n, part in enumerate(parts):
                m.d.comb += prepared.cells[f"extent_{n}"].eq(
                    Mux(part.extent > part.most, part.most, part.extent)
                )
