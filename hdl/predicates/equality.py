# SPDX-License-Identifier: Apache-2.0
"""An equality of all key fields, and the remainders that a pass may compare in place of keys."""

from dataclasses import dataclass
from functools import cache, reduce
from operator import xor

from amaranth import *
from amaranth.lib import data

from hdl.ecp5 import CarryChain, CarryEquality, is_ecp5

from .rule import MOST_DIGEST_BITS, Comparator, Rule

__all__ = ["PART_BITS", "Equality", "Remainders", "divisor", "remainder", "split_key"]

#: Bits that an equality compares as one part in its first cycle: two levels of logic.
PART_BITS = 16


def remainder(value, by):
    """Return the remainder of a polynomial division over the field of two elements.

    Bit n of a number is the coefficient of x^n.
    """
    while value.bit_length() >= by.bit_length():
        value ^= by << value.bit_length() - by.bit_length()
    return value


@cache
def divisor(degree):
    """Return the least irreducible polynomial of this degree that x does not divide.

    Parameters
    ----------
    degree : int
        At least one. The run time doubles with every second degree; it is 0.1 s for degree 24.
    """
    return next(
        candidate
        for candidate in range(1 << degree | 1, 2 << degree, 2)
        if all(remainder(candidate, by) for by in range(2, 2 << degree // 2))
    )


def split_key(key, bits):
    """Return the digest of a key and the rest of the key. The two together determine the key.

    The digest is the remainder of the key divided by :func:`divisor`, as in a cyclic redundancy
    check. Keys that differ only within ``bits`` neighbouring bits have different digests, so
    consecutive numbers do not collide. The rest is the key without its lowest ``bits``.

    Parameters
    ----------
    key : Value
        Wider than ``bits``.
    bits : int
        Width of the digest.

    Returns
    -------
    tuple of Value
        Digest and rest.
    """
    rest = key[bits:]
    shares = [remainder(1 << bits + n, divisor(bits)) for n in range(len(rest))]
    digest = Cat(
        reduce(xor, (rest[n] for n, share in enumerate(shares) if share >> bit & 1), key[bit])
        for bit in range(bits)
    )
    return digest, rest


def equal_parts(a, b):
    """Return whether two words agree, part by part."""
    return [
        a[first : first + PART_BITS] == b[first : first + PART_BITS]
        for first in range(0, len(b), PART_BITS)
    ]


@dataclass(frozen=True, kw_only=True)
class Equality(Rule):
    """All key fields are equal. The criterion of a probe is its own key.

    It is compared in parts of :data:`PART_BITS` bits. On an ECP5 a scan uses
    :class:`~hdl.ecp5.CarryChain`, and an index, with one comparator per region,
    :class:`~hdl.ecp5.CarryEquality`.
    """

    kind = "equality"
    fixed = {"comparator": "equality"}

    def digest_range(self, parameters):
        """Return least and greatest width of a digest, and the reason for the two."""
        most = min(MOST_DIGEST_BITS, parameters.key_bits - 1)
        return 1, most, f"fewer than a key has and at most {MOST_DIGEST_BITS}"

    def compare(self, m, platform, comparator):
        fields = comparator.parameters.keys
        criterion = Cat(getattr(comparator.criterion, field.name) for field in fields)
        key = Value.cast(comparator.key)
        if is_ecp5(platform):
            equal = Signal(reset_less=True)
            if comparator.has_chains(platform):
                m.submodules.equality = equality = CarryChain([len(key)], relation="equal")
                m.d.sync += equal.eq(equality.holds)
            else:
                m.submodules.equality = equality = CarryEquality(len(key))
                m.d.sync += equal.eq(equality.equal)
            m.d.comb += [equality.a.eq(criterion), equality.b.eq(key)]
            return equal
        matches = []
        for n, agrees in enumerate(equal_parts(criterion, key)):
            part = Signal(name=f"part_{n * PART_BITS}", reset_less=True)
            m.d.sync += part.eq(agrees)
            matches.append(part)
        return Cat(matches).all()


@dataclass(frozen=True, kw_only=True)
class Remainders(Equality):
    """An equality whose passes compare remainders (:func:`split_key`) in place of keys."""

    #: Cycles from the digests of a row to what the comparators get.
    row_latency = 0

    def stored_layout(self, parameters):
        bits = parameters.engine.digest_bits
        return data.StructLayout({"digest": bits, "rest": parameters.key_bits - bits})

    def stored(self, parameters, key):
        digest, rest = split_key(Value.cast(key), parameters.engine.digest_bits)
        return {"digest": digest, "rest": rest}

    def verified_layouts(self, parameters):
        """Return the layouts of what a verifier compares of a stored key and of a probe: all."""
        return self.stored_layout(parameters), self.criterion_layout(parameters)

    def digest_comparator(self, parameters):
        """Return a comparator of digests."""
        return Comparator(parameters.scanned, probe_side=0)

    def row_preparation(self, parameters):
        """Return what prepares the digests of a row for these comparators; None for nothing."""
        return

    def verify(self, m, parameters, key, criterion):
        """Return in parts whether a whole key matches: parts of now, and of a cycle later."""
        return equal_parts(key, Value.cast(criterion)), []
