# SPDX-License-Identifier: Apache-2.0
"""The digest of a key: a few bits that distinguish it from nearly all other keys."""

from functools import cache, reduce
from operator import xor

from amaranth import *

__all__ = ["divisor", "split_key"]


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
