# SPDX-License-Identifier: Apache-2.0
"""The hash of a key field: a multiplication by a number that a control word chooses."""

from functools import reduce
from operator import add

from amaranth import *
from amaranth.lib import data

from hdl.words.inputs import SEED_BITS

__all__ = ["FIRST_SEEDS", "FieldHash", "first_seed"]

#: Bits of one operand of a multiplier of an ECP5.
LIMB = 18

#: Seeds after reset, field by field: fractional parts of square roots (of 5, halved, then of 2, 3,
#: 7, 11, 13, 17 and 19). Multiples of such a number lie evenly, so keys that are counted through,
#: or grids of such keys, spread better than at random.
FIRST_SEEDS = (
    0x9E3779B9, 0x6A09E667, 0xBB67AE85, 0xA54FF53A,
    0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
)  # fmt: skip


def first_seed(n):
    """Return the seed that the ``n``-th key field has after reset."""
    return FIRST_SEEDS[n % len(FIRST_SEEDS)]


class FieldHash:
    """How one key field becomes a number of ``bucket_width`` bits.

    The lowest bits of the first field go in as they are, so keys that lie close together, such as
    codes of a dictionary, share no bucket. All other bits, and all bits of other fields, are
    multiplied by the seed, repeated up to :attr:`width` bits; the product is cut to these, and its
    upper ``bucket_width`` bits are added. Which keys collide depends on the seed: for two keys and
    a seed drawn at random the probability is at most ``4 / 2 ** bucket_width``.

    A multiplication is done in two steps, so that there can be registers between them:
    :meth:`operands` are limbs of :data:`LIMB` bits, a multiplier for each two, and :meth:`total`
    adds their products.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    n : int
        Number of the key field.

    Attributes
    ----------
    plain : int
        Lowest bits of the field that are not multiplied.
    multiplied : int
        The other bits.
    width : int
        Bits of the product that count; zero if nothing is multiplied.
    layout : StructLayout
        Of what :meth:`gathered` returns.
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
        """Return the limbs that are multiplied: where both begin, and their bits."""
        return [
            (one, other)
            for one in limbs(self.multiplied)
            for other in limbs(self.width)
            if one[0] + other[0] < self.width
        ]

    def operands(self, value, seed):
        """Return the operands of all multipliers, two each.

        Parameters
        ----------
        value : Value
            The field, as its bits stand.
        seed : Value
            Of the field.
        """
        rest = Value.cast(value)[self.plain :]
        multiplier = Cat(seed, seed)[2 * SEED_BITS - self.width :]
        return [
            (rest[i : i + i_bits], multiplier[j : j + j_bits])
            for (i, i_bits), (j, j_bits) in self.limbs()
        ]

    def gathered(self, value, products):
        """Return the products, and what of the field is not multiplied, as one value.

        Parameters
        ----------
        value : Value
            The field.
        products : sequence of Value
            Of the :meth:`operands`.
        """
        return Cat(Value.cast(value)[: self.plain], *products)

    def total(self, products):
        """Return the hash, of ``bits`` bits, of what was :meth:`gathered`, as a view of it."""
        upper = Const(0)
        if self.width:
            upper = reduce(add, self.terms(products))[self.width - self.bits : self.width]
        return (products.plain + upper)[: self.bits]

    def terms(self, products):
        """Return what the products add up from: those that do not overlap are one number."""
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
    """Return the limbs of a number of so many bits: where each begins, and its bits."""
    return [(first, min(LIMB, bits - first)) for first in range(0, bits, LIMB)]
