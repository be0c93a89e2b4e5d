# SPDX-License-Identifier: Apache-2.0
"""Which part every compared field takes in the bucket of a tuple, for an index engine."""

from collections.abc import Mapping
from dataclasses import dataclass

from host.manifest import Manifest
from host.predicate import OPEN, Bounds

__all__ = ["Coordinate", "bucket_plan", "hash_turn"]

SPARE_BITS = 2
"""Beside a hash, cells are so many bits wider: on average a probe visits 1.25 of them at most."""


@dataclass(frozen=True)
class Coordinate:
    """Part of one field: see ``COORDINATE`` in docs/architecture.md.

    Parameters
    ----------
    shift : int
        The field, without its sign and shifted right so far, is the coordinate: the number of a
        cell that is ``2 ** shift`` values wide.
    width : int
        Its lowest bits that become part of the bucket's number; zero for none.
    place : int
        Where they go.
    hashed : bool
        The whole field is hashed instead.
    """

    shift: int = 0
    width: int = 0
    place: int = 0
    hashed: bool = False

    def value(self, manifest: Manifest) -> int:
        """Return the operand of the control word that sets it."""
        if manifest.index is None:
            raise ValueError("Only an index engine has buckets")
        number = 0
        for name, place in manifest.index.coordinate.fields.items():
            number |= (int(getattr(self, name)) & ((1 << place.bits) - 1)) << place.offset
        return number


def bucket_plan(manifest: Manifest, bounds: Mapping[str, Bounds]) -> dict[str, Coordinate]:
    """Choose the parts of all fields for a predicate.

    Fields whose difference is fixed are hashed: a probe visits one bucket. Fields whose difference
    is bounded make a grid, with cells at least as wide as the bounds are apart, so that a probe
    visits one or two cells in each direction. Beside a hash only the field with the most cells is
    cut, and more coarsely: keys may be few, with many rows each, or as good as unique, when every
    further cell would be in vain. Other fields, and all of a predicate without any bounds, take no
    part: their probes read the whole window.

    Parameters
    ----------
    manifest : Manifest
        Of an index engine with comparator ``"band"``.
    bounds : mapping of str to Bounds
        Of ``r - s``, by key field.
    """
    assert manifest.index is not None
    plan = {key.name: Coordinate() for key in manifest.keys}
    spans = {}
    for key in manifest.keys:
        term = bounds.get(key.name, OPEN)
        if term.low is not None and term.high is not None:
            spans[key.name] = max(term.high - term.low, 0)
    fixed = [name for name, span in spans.items() if span == 0]
    plan |= {name: Coordinate(hashed=True) for name in fixed}

    bits = {key.name: key.bits for key in manifest.keys}
    spare = SPARE_BITS if fixed else 0
    shifts = {name: span.bit_length() + spare for name, span in spans.items() if span}
    grid = [name for name, shift in shifts.items() if shift < bits[name]]
    total = manifest.index.bucket_bits
    if fixed and grid:
        name = max(grid, key=lambda name: bits[name] - shifts[name])
        width = min(total // 2, bits[name] - shifts[name])
        below = hash_turn(manifest, fixed[0]) >= width
        return plan | {name: Coordinate(shifts[name], width, 0 if below else total - width)}
    left, place = total, 0
    for n, name in enumerate(grid):
        width = min(left // (len(grid) - n), bits[name] - shifts[name])
        plan[name] = Coordinate(shifts[name], width, place)
        place, left = place + width, left - width
    return plan


def hash_turn(manifest: Manifest, name: str) -> int:
    """Return the bit of the bucket that the lowest bit of a hashed field becomes.

    The hash is a fold, so keys that are few and small, such as codes of a dictionary, differ in
    the bits from there on only; cells beside it belong elsewhere.
    """
    assert manifest.index is not None
    names = [key.name for key in manifest.keys]
    return names.index(name) * manifest.index.bucket_bits // len(names)
