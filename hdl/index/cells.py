# SPDX-License-Identifier: Apache-2.0
"""Bucket computation, done once for all regions: where a tuple is stored, and what it visits."""

from functools import reduce
from operator import or_, xor

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.streams.steady import SteadyRegister, steady
from hdl.words.inputs import Control, InputKind, coordinate_layout
from hdl.words.prepared import field_ranges, region_word

from .bucket_hash import FieldHash, first_seed
from .disjoint_parts import elaborate_disjoint, wanted_bits, wanted_layout
from .limb_multiplier import LimbMultiplier

__all__ = ["CellPreparation"]


class CellPreparation(wiring.Component):
    """Compute the bucket that a tuple is stored in and the buckets that it visits as a probe.

    For an equality both are the same bucket, a hash of the key. For a band, control words assign
    each field a part of the bucket number (:func:`hdl.words.inputs.coordinate_layout`). In both
    cases control words set the seed of the hash (:class:`hdl.index.bucket_hash.FieldHash`).

    Fields that own bits of the bucket number form a grid. A probe visits every cell that its range
    touches once, and at most as many cells along a field as its bits have values. Hashing suits a
    field whose two bounds are equal. A field without a part is only compared. If a part overlaps
    that of another field or exceeds the bucket number, its width is set to zero on the way out
    (:mod:`hdl.index.disjoint_parts`).

    Latency: :attr:`latency` cycles. Equality: input register, multiplication, addition. Band: input
    register; shift and multiplication; subtraction, placement and addition; limiting. Throughput: 1
    word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    i : In(steady(region_word(parameters)))
        Words whose bucket and cells are not computed yet.
    o : Out(steady(region_word(parameters)))
        The same words with bucket and cells.
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
        if band:
            self.elaborate_band(m, near, output)
        else:
            self.elaborate_equality(m, near, output)
        return m

    def elaborate_equality(self, m, near, output):
        """Multiply the fields and write the hash into the word."""
        m.submodules.multiplied = multiplied = SteadyRegister(region_word(self.parameters))
        connect(m, near.o, multiplied.i)
        word = multiplied.o.payload
        m.d.comb += [output.i.valid.eq(multiplied.o.valid), output.i.payload.eq(word)]
        hashes = [
            self.elaborate_hash(m, n, "key", near, word) for n, _ in enumerate(self.parameters.keys)
        ]
        with m.If(word.kind != InputKind.CONTROL):
            m.d.comb += output.i.payload.body.tuple.bucket.eq(reduce(xor, hashes))

    def elaborate_band(self, m, near, output):
        """Shift and multiply the fields, place them, and write the cells into the word."""
        word = region_word(self.parameters)
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
        for n, field in enumerate(self.parameters.keys):
            self.shift_field(
                m, self.elaborate_part(m, n, near.o, near.o.payload, "shifted"),
                self.values(n, near.o.payload), shifted.i.payload.coordinates[field.name],
            )  # fmt: skip
            hashes = {
                name: self.elaborate_hash(m, n, name, near, shifted.o.payload.word)
                for name in ("key", "low")
            }
            self.place_field(
                m, n, self.elaborate_part(m, n, shifted.o, placed.i.payload.word, "placed"),
                hashes, shifted.o.payload.coordinates[field.name],
                placed.i.payload.parts[field.name],
            )  # fmt: skip
        self.elaborate_cells(m, placed.o.payload, output.i.payload)

    def layouts(self):
        """Return the layouts of all fields after the shift stage and after the placement stage."""
        bits = self.parameters.bucket_width
        coordinates, parts = {}, {}
        for field in self.parameters.keys:
            whole = unsigned(field.bits)
            coordinates[field.name] = data.StructLayout(
                {
                    **dict.fromkeys(("key", "low", "high"), whole),
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

    def elaborate_hash(self, m, n, name, near, word):
        """Multiply the value ``name`` of a field at the input; return its hash, two cycles later.

        Parameters
        ----------
        near : SteadyRegister
            Register that holds the word while its operands are in the multipliers' input registers.
        word : View
            The same word two cycles later.
        """
        hash_, field = self.hashes[n], self.parameters.keys[n].name
        part = self.elaborate_part(m, n, self.i, self.i.payload, f"{name}_multiplied")
        products = []
        for place, (a, b) in enumerate(
            hash_.operands(self.values(n, self.i.payload)[name], part.seed)
        ):
            multiplier = LimbMultiplier(len(a), len(b), gated=near.gated)
            m.submodules[f"{field}_{name}_{place}"] = multiplier
            m.d.comb += [
                multiplier.a.eq(a),
                multiplier.b.eq(b),
                multiplier.load.eq(self.i.valid),
                multiplier.multiply.eq(near.o.valid),
            ]
            products.append(multiplier.product)
        gathered = Signal(hash_.layout, name=f"{field}_{name}_products")
        m.d.comb += Value.cast(gathered).eq(hash_.gathered(self.values(n, word)[name], products))
        return hash_.total(gathered)

    def values(self, n, word):
        """Return the key of a tuple in one field and, for a band, the bounds of its range."""
        name, prepared = self.parameters.keys[n].name, word.body.tuple
        values = {"key": prepared.key[name]}
        if self.parameters.comparator == "band":
            ranges = field_ranges(self.parameters, prepared.criterion)
            values["low"], values["high"] = ranges[name]
        return values

    def elaborate_part(self, m, n, words, word, stage):
        """Return the field's part in this pipeline stage; passing control words update it."""
        name = f"{self.parameters.keys[n].name}_{stage}"
        layout = coordinate_layout(self.parameters)
        part = Signal(layout, name=name, init={"seed": first_seed(n)})
        control = word.body.control
        transfer = words.valid & (word.kind == InputKind.CONTROL)
        with m.If(transfer & (control.op == Control.COORDINATE) & (control.index == n)):
            m.d.sync += part.as_value().eq(control.value)
        return part

    def shift_field(self, m, part, values, coordinates):
        """Shift the key and the bounds of a field to coordinates; detect an empty range."""
        m.d.comb += [coordinates[name].eq(value >> part.shift) for name, value in values.items()]
        m.d.comb += coordinates.none.eq(values["low"] > values["high"])

    def place_field(self, m, n, part, hashes, coordinates, placed):
        """Move the coordinates to the field's bits of the bucket number; compute the extent."""
        bits = self.parameters.bucket_width
        most = Signal(bits, name=f"most_{n}")  # highest coordinate in use
        m.d.comb += most.eq(Cat(part.width > bit for bit in range(bits)))
        hashed = part.hashed.replicate(bits)
        for name in ("key", "low"):
            m.d.comb += [
                placed[name].eq((coordinates[name] & most) << part.place),
                placed[f"{name}_hash"].eq(hashes[name] & hashed),
            ]
        m.d.comb += [
            placed.most.eq(most),
            placed.extent.eq(coordinates.high - coordinates.low),
            placed.none.eq(coordinates.none),
        ]

    def elaborate_cells(self, m, placed, word):
        """Limit the number of cells, and combine the fields into bucket and cells."""
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
