# SPDX-License-Identifier: Apache-2.0
"""The cells that the digests of a band are made of, chosen for the bounds of a query."""

from collections.abc import Mapping
from dataclasses import dataclass

from host.encode.spread import Spread, tightened
from host.hardware.buckets import cell_bits
from host.manifest import Manifest
from host.reference.predicate import OPEN, Bounds

__all__ = ["Cell", "cell_plan"]


@dataclass(frozen=True)
class Cell:
    """What a part of the digests is made of: see ``CELL`` in docs/architecture.md.

    Parameters
    ----------
    field : int
        Number of the key field.
    shift : int
        Positions by which the field, without its sign, is shifted right. The result numbers cells
        that are ``2 ** shift`` values wide.
    """

    field: int = 0
    shift: int = 0

    def value(self, manifest: Manifest) -> int:
        """Return the operand of the control word that sets this part."""
        if manifest.digests is None:
            raise ValueError("Only a band with digests has cells")
        number = 0
        for name, place in manifest.digests.cell.fields.items():
            number |= (getattr(self, name) & ((1 << place.bits) - 1)) << place.offset
        return number


def cell_plan(
    manifest: Manifest,
    bounds: Mapping[str, Bounds],
    spreads: Mapping[str, Spread] | None = None,
) -> list[Cell]:
    """Choose the cells of every part of the digests for a predicate.

    A field that is bounded on both sides has the narrowest cells that are as wide as the range
    between its bounds, so that a range meets two cells at most. The lowest bits that all values
    share are left out. Such a field has the part of its own number. The parts of all other fields,
    which cannot tell keys apart, go to the field that has most bits beyond its parts, for these
    bits. If no field is bounded, every key has the same digest.

    Parameters
    ----------
    manifest : Manifest
        Manifest of a band with digests.
    bounds : mapping of str to Bounds
        Bounds of ``r - s``, by key field.
    spreads : mapping of str to Spread, optional
        Known facts about the values, by key field.
    """
    assert manifest.digests is not None
    spreads = spreads or {}
    shifts, left = {}, {}
    for n, key in enumerate(manifest.keys):
        spread = spreads.get(key.name)
        shift = narrowest(tightened(bounds.get(key.name, OPEN), spread))
        if shift is None:
            continue
        if spread is not None and spread.step:
            shift = max(shift, (spread.step & -spread.step).bit_length() - 1)
        needed = cell_bits(key.bits, spread, min(shift, key.bits))
        if needed > 1:  # one bit numbers two cells, and a range may meet both
            shifts[n], left[n] = shift, needed
    widths = manifest.digests.parts
    plan = [Cell(0, manifest.keys[0].bits) for _ in widths]
    own = [n for n, _ in enumerate(widths) if n in shifts]
    for part in own + [n for n, _ in enumerate(widths) if n not in shifts]:
        if not left:
            break
        field = part if part in own else max(left, key=lambda n: left[n])
        if left[field] > 0:
            plan[part] = Cell(field, shifts[field])
            shifts[field] += widths[part]
            left[field] -= widths[part]
    return plan


def narrowest(bounds: Bounds) -> int | None:
    """Return the logarithm of the narrowest cells for a range; None if a bound is open."""
    if bounds.low is None or bounds.high is None:
        return None
    return max(bounds.high - bounds.low - 1, 0).bit_length()
