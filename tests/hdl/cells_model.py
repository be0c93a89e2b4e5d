# SPDX-License-Identifier: Apache-2.0
"""Buckets and cells from plain integers: what the index engine's preparation works out."""

from dataclasses import dataclass, replace
from functools import reduce
from itertools import product

from hdl.words.inputs import coordinate_layout
from tests.hdl.input_words import criterion_ranges, integer, stored_key

__all__ = ["Part", "bucket_of", "cells_of", "granted", "visited_buckets"]


@dataclass(frozen=True)
class Part:
    """The part of a field in a bucket's number."""

    shift: int = 0
    width: int = 0
    place: int = 0
    hashed: bool = False

    def value(self, parameters):
        """The operand of the control word that sets it."""
        return integer(
            coordinate_layout(parameters),
            {
                "shift": self.shift,
                "width": self.width,
                "place": self.place,
                "hashed": int(self.hashed),
            },
        )


def granted(parameters, parts, n, wanted):
    """What the ``n``-th field gets of the ``wanted`` part, while all fields have ``parts``."""
    others = (*parts[:n], *parts[n + 1 :])
    taken = {bit for part in others for bit in bits_of(part)}
    fits = wanted.place + wanted.width <= parameters.bucket_width
    return wanted if fits and taken.isdisjoint(bits_of(wanted)) else replace(wanted, width=0)


def bits_of(part):
    """The bits of a bucket's number that a part takes."""
    return range(part.place, part.place + part.width)


def fold(value, bits, turn):
    """The hash of a number."""
    folded = 0
    while value:
        folded ^= value & ((1 << bits) - 1)
        value >>= bits
    return (folded << turn | folded >> (bits - turn)) & ((1 << bits) - 1)


def hash_of(parameters, n, value):
    """The hash of the ``n``-th field."""
    bits = parameters.bucket_width
    return fold(value, bits, n * bits // len(parameters.keys))


def bucket_of(parameters, parts, key):
    """Where a tuple with this key is stored; ``parts`` are those of its fields, in order."""
    if parameters.comparator != "band":
        patterns = (key[field.name] & ((1 << field.bits) - 1) for field in parameters.keys)
        return reduce(
            int.__xor__, (hash_of(parameters, n, value) for n, value in enumerate(patterns))
        )
    stored = stored_key(parameters, key)
    bucket = 0
    for n, (field, part) in enumerate(zip(parameters.keys, parts, strict=True)):
        value = stored[field.name]
        if part.hashed:
            bucket ^= hash_of(parameters, n, value)
        bucket ^= (value >> part.shift & ((1 << part.width) - 1)) << part.place
    return bucket


def cells_of(parameters, parts, criterion):
    """What a probe with this criterion visits."""
    start = hashed = none = 0
    cells = {}
    ranges = criterion_ranges(parameters, criterion)
    for n, (part, (low, high)) in enumerate(zip(parts, ranges, strict=True)):
        most = (1 << part.width) - 1
        start |= (low >> part.shift & most) << part.place
        hashed ^= hash_of(parameters, n, low) if part.hashed else 0
        none |= low > high
        extent = (high >> part.shift) - (low >> part.shift)
        field_most = (1 << parameters.keys[n].bits) - 1
        cells[f"extent_{n}"] = min(extent & field_most, most)
    return {"start": start, "hash": hashed, "none": none, **cells}


def visited_buckets(parameters, parts, cells):
    """The buckets that a probe visits, the first field fastest."""
    if cells["none"]:
        return []
    digits = []
    for n, part in enumerate(parts):
        first = cells["start"] >> part.place & ((1 << part.width) - 1)
        digits.append(
            [
                ((first + step) % (1 << part.width)) << part.place
                for step in range(cells[f"extent_{n}"] + 1)
            ]
        )
    return [sum(digit) ^ cells["hash"] for digit in (d[::-1] for d in product(*digits[::-1]))]
