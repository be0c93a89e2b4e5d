# SPDX-License-Identifier: Apache-2.0
"""What an engine looks at before it compares whole keys: the bucket of an index, a digest."""

import numpy as np

from hdl.comparison.digest import divisor, remainder
from host.bucket_hash import field_hash
from host.buckets import Coordinate

__all__ = ["colliding", "first_looks"]

#: Keys among which those are sought that look alike.
CANDIDATES = 1 << 12


def patterns(manifest, keys):
    """Return the bits of all fields as unsigned numbers; of a band, the least value is zero."""
    for key in manifest.keys:
        bits = np.asarray(keys[key.name]).astype(np.uint64)
        bits &= np.uint64((1 << key.bits) - 1)
        if key.signed and manifest.comparator == "band":
            bits ^= np.uint64(1 << key.bits - 1)
        yield key, bits


def coordinate(manifest, operand):
    """Return the part of a field in a bucket's number that a control word's operand sets."""
    fields = manifest.index.coordinate.fields.items()
    return Coordinate(
        **{name: operand >> place.offset & ((1 << place.bits) - 1) for name, place in fields}
    )


def buckets(manifest, operands, keys):
    """Return the bucket of each key; ``operands`` are those of COORDINATE, by field."""
    found = np.zeros(1, np.uint64)
    for n, (key, bits) in enumerate(patterns(manifest, keys)):
        part = coordinate(manifest, operands.get(n, 0))
        hashed = part.hashed or manifest.comparator != "band"
        if not hashed:
            cell = bits >> np.uint64(part.shift) & np.uint64((1 << part.width) - 1)
            found = found ^ cell << np.uint64(part.place)
        if hashed:
            width = manifest.index.bucket_bits
            found = found ^ field_hash(
                bits, seed=part.seed, bits=key.bits, bucket_bits=width, first=n == 0
            )
    return found


def digests(manifest, keys):
    """Return the digest of each key."""
    by = divisor(manifest.parameters["digest_bits"])
    whole = [0] * len(next(iter(keys.values())))
    place = 0
    for key, bits in patterns(manifest, keys):
        whole = [number | int(value) << place for number, value in zip(whole, bits, strict=True)]
        place += key.bits
    return np.array([remainder(number, by) for number in whole], np.uint64)


def first_looks(manifest, operands, keys):
    """Return what an engine looks at first, for each key; None if that is the key itself.

    Parameters
    ----------
    manifest : Manifest
        Of the accelerator.
    operands : mapping of int to int
        Of the last COORDINATE words, by key field.
    keys : mapping of str to array
        By field.
    """
    if manifest.engine == "index":
        return buckets(manifest, operands, keys)
    if manifest.parameters["digest_bits"] is not None:
        return digests(manifest, keys)
    return None


def colliding(manifest, operands, draw, count, generator):
    """Return keys, as different as possible, at which an engine has the same first look.

    Parameters
    ----------
    manifest, operands
        As for :func:`first_looks`.
    draw : callable
        Returns so many random keys.
    count : int
        Keys.
    generator : numpy.random.Generator
        Which of them.
    """
    candidates = draw(CANDIDATES)
    looks = first_looks(manifest, operands, candidates)
    if looks is None:
        return draw(count)
    looks = np.broadcast_to(looks, CANDIDATES)
    values, counts = np.unique(looks, return_counts=True)
    alike = np.flatnonzero(looks == values[np.argmax(counts)])
    chosen = generator.choice(alike, count)
    return {name: column[chosen] for name, column in candidates.items()}
