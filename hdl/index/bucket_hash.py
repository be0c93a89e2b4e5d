# SPDX-License-Identifier: Apache-2.0
"""Hash of a key field: multiplication by a seed that a control word sets."""

from functools import reduce
from operator import add

from amaranth import *
from amaranth.lib import data

from hdl.words.inputs import SEED_BITS

__all__ = ["FIRST_SEEDS", "FieldHash", "first_seed"]

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
    """Hash one key field to a number of ``bucket_width`` bits.

    The lowest bits of the first field are used unchanged, so that nearby keys, such as dictionary
    codes, fall into different buckets. All other bits of the first field, and all bits of the other
    fields, are multiplied by the seed, which is repeated up to :attr:`width` bits. The product is
    truncated to :attr:`width` bits, and its upper ``bucket_width`` bits are added to the unchanged
    bits. The seed decides which keys collide: for two keys and a random seed, the probability is at
    most ``4 / 2 ** bucket_width``.

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
        bits, field = parameters.bucket_width, parameters.keys[n]
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
