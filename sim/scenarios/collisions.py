# SPDX-License-Identifier: Apache-2.0
"""What an engine compares before whole keys: the bucket of an index, or a digest."""

import numpy as np

from hdl.predicates.equality import divisor, remainder
from host.protocol.buckets import Coordinate
from sim.model.words import field_hash

__all__ = ["colliding", "first_looks"]

#: Number of random keys among which colliding ones are sought.
CANDIDATES = 1 << 14


def patterns(manifest, keys):
    """Yield each field's values as unsigned bits; for a band, the smallest value becomes zero."""
    for key in manifest.keys:
        bits = np.asarray(keys[key.name]).astype(np.uint64)
        bits &= np.uint64((1 << key.bits) - 1)
        if key.signed and manifest.bounded:
            bits ^= np.uint64(1 << key.bits - 1)
        yield key, bits


def coordinate(manifest, operand):
    """Return the part of a field in the bucket number, from the operand of a COORDINATE word."""
    fields = manifest.index.coordinate.fields.items()
    return Coordinate(
        **{name: operand >> place.offset & ((1 << place.bits) - 1) for name, place in fields}
    )


def buckets(manifest, operands, keys):
    """Return the bucket of each key; ``operands`` are those of COORDINATE words, by field."""
    found = np.zeros(1, np.uint64)
    for n, (key, bits) in enumerate(patterns(manifest, keys)):
        part = coordinate(manifest, operands.get(n, 0))
        hashed = part.hashed or not manifest.has_grid
        if not hashed:
            cell = bits >> np.uint64(part.shift) & np.uint64((1 << part.width) - 1)
            found = found ^ cell << np.uint64(part.place)
        if hashed:
            width = manifest.index.bucket_bits
            found = found ^ field_hash(
                bits, seed=part.seed, bits=key.bits, bucket_bits=width, first=n == 0
            )
    return found


def cells(manifest, operands, keys):
    """Return the digest of each key of a band; ``operands`` are those of CELL words, by part."""
    values = [bits for _, bits in patterns(manifest, keys)]
    found, place = np.zeros(1, np.uint64), 0
    for n, width in enumerate(manifest.digests.parts):
        field, shift = (
            operands.get(n, 0) >> at.offset & ((1 << at.bits) - 1)
            for at in (manifest.digests.cell.fields[name] for name in ("field", "shift"))
        )
        if field < len(values) and shift < 64:
            cell = values[field] >> np.uint64(shift) & np.uint64((1 << width) - 1)
            found = found | cell << np.uint64(place)
        place += width
    return found


def digests(manifest, operands, keys):
    """Return the digest of each key."""
    if manifest.digests is not None:
        return cells(manifest, operands, keys)
    by = divisor(manifest.digest_bits)
    whole = [0] * len(next(iter(keys.values())))
    place = 0
    for key, bits in patterns(manifest, keys):
        whole = [number | int(value) << place for number, value in zip(whole, bits, strict=True)]
        place += key.bits
    return np.array([remainder(number, by) for number in whole], np.uint64)


def first_looks(manifest, operands, keys):
    """Return what an engine compares first for each key; None if it compares the key itself.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    operands : mapping of int to int
        Operands of the last COORDINATE words, by the number of the key field, or of the last CELL
        words, by the number of the part.
    keys : mapping of str to array
        Values of each key field, by name.
    """
    if manifest.index is not None:
        return buckets(manifest, operands, keys)
    if manifest.digest_bits is not None:
        return digests(manifest, operands, keys)
    return None


def colliding(manifest, operands, draw, count, generator):
    """Return keys, as different as possible, that have the same bucket or digest.

    Parameters
    ----------
    manifest, operands
        As for :func:`first_looks`.
    draw : callable
        Called with a count; returns that many random keys.
    count : int
        Number of keys.
    generator : numpy.random.Generator
        Chooses among the colliding keys.
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
