# SPDX-License-Identifier: Apache-2.0
"""The part of each compared field in the bucket number of a tuple, for an index engine."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from host.protocol.manifest import Manifest
from host.protocol.spread import Spread, seeds, tightened
from host.reference.predicate import OPEN, Bounds

__all__ = [
    "Coordinate",
    "bucket_plan",
]

SPARE_BITS = 2
"""Extra width of cells beside a hash, in bits: a probe visits at most 1.25 cells on average."""


@dataclass(frozen=True)
class Coordinate:
    """The part of one field in the bucket number: see ``COORDINATE`` in docs/architecture.md.

    Parameters
    ----------
    shift : int
        Positions by which the field, without its sign, is shifted right. The result numbers cells
        that are ``2 ** shift`` values wide.
    width : int
        Number of lowest bits of the cell number that the bucket number contains; may be zero.
    place : int
        Position of these bits in the bucket number.
    hashed : bool
        Whether the whole field is hashed instead.
    seed : int
        Seed of the hash.
    """

    shift: int = 0
    width: int = 0
    place: int = 0
    hashed: bool = False
    seed: int = 0

    def value(self, manifest: Manifest) -> int:
        """Return the operand of the control word that sets this part."""
        if manifest.index is None:
            raise ValueError("Only an index engine has buckets")
        layout = manifest.index.coordinate
        return layout.number({name: int(getattr(self, name)) for name in layout.fields})


def bucket_plan(
    manifest: Manifest,
    bounds: Mapping[str, Bounds],
    spreads: Mapping[str, Spread] | None = None,
    choice: int = 0,
    *,
    finer: Mapping[str, int] | None = None,
) -> dict[str, Coordinate]:
    """Choose the parts of all fields in the bucket number for a predicate.

    Fields whose difference is fixed are hashed, so that a probe visits one bucket. Fields whose
    difference is bounded form a grid. Its cells are at least as wide as the range between the
    bounds, so that a probe visits one or two cells in each direction. No field gets more bits than
    its values fill, and the field with the most cells has the lowest bits.

    Beside a hash, only the field with the most cells is cut, and more coarsely. The hashed keys may
    be few, with many rows each, which take narrower cells (``finer``), or nearly unique, and then
    further cells would not help. All other
    fields have no part in the bucket number. The probes of a predicate without any bounds read the
    whole window.

    Parameters
    ----------
    manifest : Manifest
        Manifest of an index engine.
    bounds : mapping of str to Bounds
        Bounds of ``r - s``, by key field. The comparator ``"equality"`` needs none.
    spreads : mapping of str to Spread, optional
        Known facts about the values, by key field.
    choice : int
        Choice of the hash's seeds; see :func:`host.protocol.spread.seeds`.
    finer : mapping of str to int, optional
        How many times the cells of a field are halved, by its name; a negative number doubles them.
        Where tuples lie close together, the entries of wide cells cost more than visits to more
        cells; see :mod:`host.protocol.cells`.
    """
    assert manifest.index is not None
    spreads = spreads or {}
    names = [key.name for key in manifest.keys]
    seeded = dict(zip(names, seeds(choice, len(names)), strict=True))
    if not manifest.index.has_grid:
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
    halved = finer or {}
    shifts = {
        name: max(span.bit_length() + spare - halved.get(name, 0), 0)
        for name, span in spans.items()
        if span
    }
    cells = {
        name: cell_bits(bits[name], spreads.get(name), shift) for name, shift in shifts.items()
    }
    grid = {name: needed for name, needed in cells.items() if needed}
    total = manifest.index.bucket_bits
    if fixed and grid:
        name = max(grid, key=lambda name: grid[name])
        hashes = sum(cell_bits(bits[name], spreads.get(name), 0) for name in fixed)
        width = min(total - min(total - total // 2, hashes), grid[name])
        # A hash contains the lowest bits of the first field unchanged, so the cut takes the highest
        # bits.
        cut = replace(plan[name], shift=shifts[name], width=width, place=total - width)
        return plan | {name: cut}
    place = 0
    widths = shared(total, grid)
    for name in sorted(grid, key=lambda name: -widths[name]):
        plan[name] = replace(plan[name], shift=shifts[name], width=widths[name], place=place)
        place += widths[name]
    return plan


def cell_bits(bits: int, spread: Spread | None, shift: int) -> int:
    """Return how many bits number the cells of a field; a cell has ``2 ** shift`` values."""
    low, top = (0, (1 << bits) - 1) if spread is None else (spread.low, spread.top)
    return ((top >> shift) - (low >> shift)).bit_length()


def shared(total: int, needs: Mapping[str, int]) -> dict[str, int]:
    """Share bits equally among fields, but give no field more than it needs."""
    widths: dict[str, int] = {}
    for n, name in enumerate(sorted(needs, key=lambda name: needs[name])):
        widths[name] = min(needs[name], (total - sum(widths.values())) // (len(needs) - n))
    return widths
