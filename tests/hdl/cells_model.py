# SPDX-License-Identifier: Apache-2.0
"""Buckets and cells from plain integers: what the index engine's preparation works out."""

from dataclasses import dataclass, replace
from functools import reduce
from itertools import product

import numpy as np

from hdl.words.inputs import coordinate_layout
from host.protocol.spread import FIRST_SEEDS
from sim.model.words import field_hash
from tests.hdl.input_words import criterion_ranges, integer, stored_key

__all__ = ["Part", "bucket_of", "cells_of", "granted", "visited_buckets"]


@dataclass(frozen=True)
class Part:
    """The part of a field in a bucket's number."""

    shift: int = 0
    width: int = 0
    place: int = 0
    hashed: bool = False
    seed: int = FIRST_SEEDS[0]

    def value(self, parameters):
        """The operand of the control word that sets it."""
        layout = coordinate_layout(parameters)
        if parameters.predicate.kind != "band":
            return integer(layout, {"seed": self.seed})
        return integer(
            layout,
            {
                "shift": self.shift,
                "width": self.width,
                "place": self.place,
                "hashed": int(self.hashed),
                "seed": self.seed,
            },
        )


def granted(parameters, parts, n, wanted):
    """What the ``n``-th field gets of the ``wanted`` part, while all fields have ``parts``."""
    others = (*parts[:n], *parts[n + 1 :])
    taken = {bit for part in others for bit in bits_of(part)}
    fits = wanted.place + wanted.width <= parameters.engine.bucket_bits
    return wanted if fits and taken.isdisjoint(bits_of(wanted)) else replace(wanted, width=0)


def bits_of(part):
    """The bits of a bucket's number that a part takes."""
    return range(part.place, part.place + part.width)


def hash_of(parameters, n, value, seed):
    """The hash of the ``n``-th field."""
    values = np.array([value], np.uint64)
    bits, bucket_bits = parameters.keys[n].bits, parameters.engine.bucket_bits
    hashes = field_hash(values, seed=seed, bits=bits, bucket_bits=bucket_bits, first=n == 0)
    return int(hashes[0])


def bucket_of(parameters, parts, key):
    """Where a tuple with this key is stored; ``parts`` are those of its fields, in order."""
    if parameters.predicate.kind != "band":
        patterns = (key[field.name] & ((1 << field.bits) - 1) for field in parameters.keys)
        hashes = (
            hash_of(parameters, n, value, part.seed)
            for n, (value, part) in enumerate(zip(patterns, parts, strict=True))
        )
        return reduce(int.__xor__, hashes)
    stored = stored_key(parameters, key)
    bucket = 0
    for n, (field, part) in enumerate(zip(parameters.keys, parts, strict=True)):
        value = stored[field.name]
        if part.hashed:
            bucket ^= hash_of(parameters, n, value, part.seed)
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
        hashed ^= hash_of(parameters, n, low, part.seed) if part.hashed else 0
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
