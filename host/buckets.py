# SPDX-License-Identifier: Apache-2.0
"""Which part every compared field takes in the bucket of a tuple, for an index engine."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from host.bucket_hash import seeds
from host.manifest import Manifest
from host.predicate import OPEN, Bounds
from host.spread import Spread, tightened

__all__ = ["Coordinate", "bucket_plan"]

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
    seed : int
        Of the hash.
    """

    shift: int = 0
    width: int = 0
    place: int = 0
    hashed: bool = False
    seed: int = 0

    def value(self, manifest: Manifest) -> int:
        """Return the operand of the control word that sets it."""
        if manifest.index is None:
            raise ValueError("Only an index engine has buckets")
        number = 0
        for name, place in manifest.index.coordinate.fields.items():
            number |= (int(getattr(self, name)) & ((1 << place.bits) - 1)) << place.offset
        return number


def bucket_plan(
    manifest: Manifest,
    bounds: Mapping[str, Bounds],
    spreads: Mapping[str, Spread] | None = None,
    choice: int = 0,
) -> dict[str, Coordinate]:
    """Choose the parts of all fields for a predicate.

    Fields whose difference is fixed are hashed: a probe visits one bucket. Fields whose difference
    is bounded make a grid, with cells at least as wide as the bounds are apart, so that a probe
    visits one or two cells in each direction. No field gets more bits than its values fill; the
    field with the most cells has the lowest bits. Beside a hash only the field with the most cells
    is cut, and more coarsely: keys may be few, with many rows each, or as good as unique, when
    every further cell would be in vain. Other fields, and all of a predicate without any bounds,
    take no part: their probes read the whole window.

    Parameters
    ----------
    manifest : Manifest
        Of an index engine.
    bounds : mapping of str to Bounds
        Of ``r - s``, by key field. The comparator ``"equality"`` needs none.
    spreads : mapping of str to Spread, optional
        What is known of the values, by key field.
    choice : int
        Which seeds the hash has, see :func:`host.bucket_hash.seeds`.
    """
    assert manifest.index is not None
    spreads = spreads or {}
    names = [key.name for key in manifest.keys]
    seeded = dict(zip(names, seeds(choice, len(names)), strict=True))
    if manifest.comparator == "equality":
        return {name: Coordinate(hashed=True, seed=seed) for name, seed in seeded.items()}
    plan = {name: Coordinate(seed=seed) for name, seed in seeded.items()}
    spans = {}
    for name in names:
        term = tightened(bounds.get(name, OPEN), spreads.get(name))
        if term.low is not None and term.high is not None:
            spans[name] = max(term.high - term.low, 0)
    fixed = [name for name, span in spans.items() if span == 0]
    plan |= {name: replace(plan[name], hashed=True) for name in fixed}

    bits = {key.name: key.bits for key in manifest.keys}
    spare = SPARE_BITS if fixed else 0
    shifts = {name: span.bit_length() + spare for name, span in spans.items() if span}
    cells = {
        name: cell_bits(bits[name], spreads.get(name), shift) for name, shift in shifts.items()
    }
    grid = {name: needed for name, needed in cells.items() if needed}
    total = manifest.index.bucket_bits
    if fixed and grid:
        name = max(grid, key=lambda name: grid[name])
        hashes = sum(cell_bits(bits[name], spreads.get(name), 0) for name in fixed)
        width = min(total - min(total - total // 2, hashes), grid[name])
        # A hash has the lowest bits of the first field as they are, and keys may be few.
        cut = replace(plan[name], shift=shifts[name], width=width, place=total - width)
        return plan | {name: cut}
    place = 0
    widths = shared(total, grid)
    for name in sorted(grid, key=lambda name: -widths[name]):
        plan[name] = replace(plan[name], shift=shifts[name], width=widths[name], place=place)
        place += widths[name]
    return plan


def cell_bits(bits: int, spread: Spread | None, shift: int) -> int:
    """Return how many bits number the cells, ``2 ** shift`` values wide, of a field's values."""
    low, top = (0, (1 << bits) - 1) if spread is None else (spread.low, spread.top)
    return ((top >> shift) - (low >> shift)).bit_length()


def shared(total: int, needs: Mapping[str, int]) -> dict[str, int]:
    """Share bits out among fields: equally, but to none more than it needs."""
    widths: dict[str, int] = {}
    for n, name in enumerate(sorted(needs, key=lambda name: needs[name])):
        widths[name] = min(needs[name], (total - sum(widths.values())) // (len(needs) - n))
    return widths
