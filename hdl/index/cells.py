# SPDX-License-Identifier: Apache-2.0
"""Cells: buckets that a band reaches, by the hash of their numbers."""

from functools import reduce
from operator import add, or_, xor

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.predicates.band import field_ranges
from hdl.streams.registers import SteadyRegister, steady
from hdl.words.inputs import SEED_BITS, Control, InputKind, coordinate_layout
from hdl.words.prepared import region_word

__all__ = [
    "CellPreparation",
    "FIRST_SEEDS",
    "FieldHash",
    "LimbMultiplier",
    "elaborate_disjoint",
    "first_seed",
    "wanted_bits",
    "wanted_layout",
]


class LimbMultiplier(wiring.Component):
    """Multiply two limbs, each at most as wide as an operand of the device's multiplier.

    A multiplication takes half a cycle, and multipliers have fixed places on the device. So the
    registers next to a multiplier serve it alone and can be placed beside it. Synthesis must not
    merge them (:data:`hdl.fpga.synthesis.KEEP`), although several multipliers share an operand.

    Latency: 2 cycles. Throughput: 1 product per cycle.

    Parameters
    ----------
    a_bits, b_bits : int
        Widths of the limbs.
    gated : bool
        Whether the registers have clock enables, ``load`` and ``multiply``.

    Members
    -------
    a, b : In
    load : In(1)
        If gated: take the operands.
    multiply : In(1)
        If gated: take the product of the registered operands.
    product : Out(a_bits + b_bits)
    """

    def __init__(self, a_bits, b_bits, *, gated):
        self.gated = gated
        self.latency = 2
        super().__init__(
            {
                "a": In(a_bits),
                "b": In(b_bits),
                "load": In(1),
                "multiply": In(1),
                "product": Out(a_bits + b_bits),
            }
        )

    def elaborate(self, platform):
        m = Module()
        a, b = (
            Signal.like(operand, reset_less=True, name=f"own_{name}")
            for name, operand in (("a", self.a), ("b", self.b))
        )
        product = Signal.like(self.product, reset_less=True, name="held")
        with m.If(self.load | ~C(self.gated, 1)):
            m.d.sync += [a.eq(self.a), b.eq(self.b)]
        with m.If(self.multiply | ~C(self.gated, 1)):
            m.d.sync += product.eq(a * b)
        m.d.comb += self.product.eq(product)
        return m


#: Operand width of an ECP5 multiplier, in bits.
LIMB = 18

#: Seeds after reset, one per key field: fractional parts of square roots (of 5, halved, then of 2,
#: 3, 7, 11, 13, 17 and 19). The multiples of such a number are evenly spaced, so consecutive keys,
#: and grids of them, spread better than random ones.
FIRST_SEEDS = (
    0x9E3779B9, 0x6A09E667, 0xBB67AE85, 0xA54FF53A,
    0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
)  # fmt: skip


def first_seed(n):
    """Return the seed of the ``n``-th key field after reset."""
    return FIRST_SEEDS[n % len(FIRST_SEEDS)]


class FieldHash:
    """Hash one key field to a number of ``bucket_bits`` bits.

    The lowest bits of the first field are used unchanged, so that nearby keys, such as dictionary
    codes, fall into different buckets. All other bits of the first field, and all bits of the other
    fields, are multiplied by the seed, which is repeated up to :attr:`width` bits. The product is
    truncated to :attr:`width` bits, and its upper ``bucket_bits`` bits are added to the unchanged
    bits. The seed decides which keys collide: for two keys and a random seed, the probability is at
    most ``4 / 2 ** bucket_bits``.

    The multiplication is split into two steps, so that registers can stand between them.
    :meth:`operands` returns the operands of one multiplier for each pair of limbs of :data:`LIMB`
    bits; :meth:`total` adds the products.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    n : int
        Index of the key field.

    Attributes
    ----------
    plain : int
        Number of low bits of the field that are used unchanged.
    multiplied : int
        Number of the remaining bits, which are multiplied.
    width : int
        Number of low bits of the product that are kept; zero if nothing is multiplied.
    layout : StructLayout
        Layout of the value that :meth:`gathered` returns.
    """

    def __init__(self, parameters, n):
        bits, field = parameters.engine.bucket_bits, parameters.keys[n]
        self.bits = bits
        self.plain = min(bits, field.bits) if n == 0 else 0
        self.multiplied = field.bits - self.plain
        self.width = min(self.multiplied + bits, 2 * SEED_BITS) if self.multiplied else 0
        members = {"plain": self.plain}
        members |= {
            f"product_{i}_{j}": i_bits + j_bits for (i, i_bits), (j, j_bits) in self.limbs()
        }
        self.layout = data.StructLayout(members)

    def limbs(self):
        """Return the pairs of limbs to multiply; a limb is its first bit and its width."""
        return [
            (one, other)
            for one in limbs(self.multiplied)
            for other in limbs(self.width)
            if one[0] + other[0] < self.width
        ]

    def operands(self, value, seed):
        """Return the two operands of every multiplier.

        Parameters
        ----------
        value : Value
            Key field, as its raw bits.
        seed : Value
            Seed of the field.
        """
        rest = Value.cast(value)[self.plain :]
        multiplier = Cat(seed, seed)[2 * SEED_BITS - self.width :]
        return [
            (rest[i : i + i_bits], multiplier[j : j + j_bits])
            for (i, i_bits), (j, j_bits) in self.limbs()
        ]

    def gathered(self, value, products):
        """Return the unchanged bits of the field and the products as one value.

        Parameters
        ----------
        value : Value
            Key field.
        products : sequence of Value
            Products of the :meth:`operands`.
        """
        return Cat(Value.cast(value)[: self.plain], *products)

    def total(self, products):
        """Return the hash, ``bits`` bits wide, from a view of the :meth:`gathered` value."""
        upper = Const(0)
        if self.width:
            upper = reduce(add, self.terms(products))[self.width - self.bits : self.width]
        return (products.plain + upper)[: self.bits]

    def terms(self, products):
        """Return the summands of the product; products that do not overlap share a summand."""
        terms = []
        for (i, _), (j, _) in self.limbs():
            place, product = i + j, products[f"product_{i}_{j}"]
            below = next((n for n, term in enumerate(terms) if len(term) <= place), None)
            if below is None:
                terms.append(product.shift_left(place))
            else:
                terms[below] = Cat(terms[below], C(0, place - len(terms[below])), product)
        return terms


def limbs(bits):
    """Return the limbs of a ``bits``-bit number, each as its first bit and its width."""
    return [(first, min(LIMB, bits - first)) for first in range(0, bits, LIMB)]


# A probe visits each cell once, and at most as many cells as there are buckets, only if no bit of
# the bucket number belongs to two fields and no part exceeds the number. Otherwise the visits of
# a probe could take years and repeat the same pairs, and CLEAR would not be executed before they
# had ended.


def wanted_layout(parameters):
    """Layout of a request: ``bits`` of a bucket number, and whether the part ``fits`` into it."""
    return data.StructLayout({"bits": parameters.engine.bucket_bits, "fits": 1})


def wanted_bits(parameters, word):
    """Return what a COORDINATE word requests, in the layout of :func:`wanted_layout`."""
    part = part_in(parameters, word)
    bits = parameters.engine.bucket_bits
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
    taken = [Signal(parameters.engine.bucket_bits, name=f"taken_{n}") for n in fields]
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


class CellPreparation(wiring.Component):
    """Compute the bucket that a tuple is stored in and the buckets that it visits as a probe.

    For an equality both are the same bucket, a hash of the key. For a band, control words assign
    each field a part of the bucket number (:func:`hdl.words.inputs.coordinate_layout`). In both
    cases control words set the seed of the hash (:class:`hdl.index.cells.FieldHash`).

    Fields that own bits of the bucket number form a grid. A probe visits every cell that its range
    touches once, and at most as many cells along a field as its bits have values. Hashing suits a
    field whose two bounds are equal. A field without a part is only compared. If a part overlaps
    that of another field or exceeds the bucket number, its width is set to zero on the way out
    (:mod:`hdl.index.cells`).

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
        self.latency = 4 if parameters.bounded else 3
        word = region_word(parameters)
        super().__init__({"i": In(steady(word)), "o": Out(steady(word))})

    def elaborate(self, platform):
        m = Module()
        word = region_word(self.parameters)
        band = bool(self.parameters.bounded)
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
        bits = self.parameters.engine.bucket_bits
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
        if self.parameters.bounded:
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
        bits = self.parameters.engine.bucket_bits
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
