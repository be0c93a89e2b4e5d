# SPDX-License-Identifier: Apache-2.0
"""The hash, the cells and the width of the cells that an index engine is configured with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from host.arrays import UInt64s
from host.protocol.buckets import Coordinate, bucket_plan, cell_bits
from host.protocol.manifest import Manifest
from host.protocol.spread import Spread, tightened
from host.reference.predicate import OPEN, Bounds

__all__ = [
    "Cell",
    "MOST_COARSER",
    "MOST_FINER",
    "cell_plan",
    "expected_cycles",
    "fitted_plan",
    "plans_of",
]

# The cells that the digests of a band are made of, chosen for the bounds of a query.


@dataclass(frozen=True)
class Cell:
    """Cell of a part of the digests: see ``CELL`` in docs/architecture.md.

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
        layout = manifest.digests.cell
        return layout.number({name: getattr(self, name) for name in layout.fields})


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


# How wide the cells of an index's grid should be, for tuples that lie as a sample of them does.
#
# A probe takes a cycle for every visit of one or two cells, and a cycle for every entry in them.
# Wide cells keep visits few: that is best where most cells are empty, or windows small. Where
# tuples lie close together, most of the entries of such cells are no match: with narrower ones, a
# probe visits more cells and reads less beside its bounds. Of the *paired* field, whose cells
# have the lowest bits of the bucket number, two neighbouring cells take one visit, so its cells
# may be half as wide as those of the other fields.

#: How many times cells are doubled at most, and halved. Cells four times as wide as the bounds are
#: apart leave at most a tenth of the visits of a field to save.
MOST_COARSER, MOST_FINER = 2, 4
#: Other cells must promise so much less work, for the promise rests on a sample.
WORTHWHILE = 0.9
#: How sharply the greater of visits and entries limits a probe, as the power of a power mean. Walks
#: and visits wait for each other where both take about as long: by measurement, 1.31 visits and
#: 1.27 entries take 1.41 cycles, 1.31 and 0.79 take 1.32.
SHARPNESS = 8
#: Odd, so that a product has all that its factor has.
_MIXED = np.uint64(0x9E3779B97F4A7C15)


def fitted_plan(
    manifest: Manifest,
    bounds: Mapping[str, Bounds],
    spreads: Mapping[str, Spread],
    choice: int,
    sample: Mapping[str, UInt64s],
    stored: int,
) -> dict[str, Coordinate] | None:
    """Return the parts of all fields in the bucket number, if other cells are worthwhile.

    Parameters
    ----------
    manifest, bounds, spreads, choice
        As for :func:`host.protocol.buckets.bucket_plan`, whose plan has cells about as wide as the
        bounds are apart.
    sample : mapping of str to array of uint64
        Values of the key fields of some tuples, modulo 2**64.
    stored : int
        Tuples of a side's window.
    """
    plans = plans_of(manifest, bounds, spreads, choice)
    if all(plan == plans[0] for plan in plans):
        return None
    cycles = [expected_cycles(manifest, plan, bounds, spreads, sample, stored) for plan in plans]
    best = min(range(len(plans)), key=lambda number: cycles[number])
    return plans[best] if cycles[best] < WORTHWHILE * cycles[0] else None


def plans_of(
    manifest: Manifest, bounds: Mapping[str, Bounds], spreads: Mapping[str, Spread], choice: int
) -> list[dict[str, Coordinate]]:
    """Return the plans to choose from, first the one whose cells are neither halved nor doubled.

    For each width there are two: square cells, and cells that are half as wide in the paired field.
    """
    plans = []
    for finer in sorted(range(-MOST_COARSER, MOST_FINER + 1), key=abs):
        square = {key.name: finer for key in manifest.keys}
        plans.append(bucket_plan(manifest, bounds, spreads, choice, finer=square))
        halved = {name: finer + (name == paired_field(plans[-1])) for name in square}
        plans.append(bucket_plan(manifest, bounds, spreads, choice, finer=halved))
    return plans


def paired_field(plan: Mapping[str, Coordinate]) -> str | None:
    """Return the field whose cells are visited two at a time; None if no field has cells."""
    return next((name for name, part in plan.items() if part.width and not part.place), None)


def expected_cycles(
    manifest: Manifest,
    plan: Mapping[str, Coordinate],
    bounds: Mapping[str, Bounds],
    spreads: Mapping[str, Spread],
    sample: Mapping[str, UInt64s],
    stored: int,
) -> float:
    """Return the cycles that a probe is expected to take: its visits or its entries.

    Parameters
    ----------
    plan : mapping of str to Coordinate
        The parts of all fields in the bucket number.
    """
    assert manifest.index is not None
    buckets = np.zeros(len(next(iter(sample.values()))), np.uint64)
    hashed, cells, visits = [], 1.0, 1.0
    for key in manifest.keys:
        part = plan[key.name]
        if part.hashed:
            hashed.append(sample[key.name])
        term = tightened(bounds.get(key.name, OPEN), spreads.get(key.name))
        if not part.width or term.low is None or term.high is None:
            continue
        touched = min((term.high - term.low) / (1 << part.shift) + 1, 1 << part.width)
        cells *= touched
        visits *= touched if part.place else visits_in_pairs(touched)
        middle = np.uint64(1 << (key.bits - 1) if key.signed else 0)
        number = (sample[key.name] + middle) >> np.uint64(part.shift)
        number &= np.uint64((1 << part.width) - 1)
        buckets |= number << np.uint64(part.place)
    alike = chance_of_two_alike([buckets])
    if hashed:  # tuples of one cell share a bucket if their keys are equal, or their hashes are
        bits = manifest.index.bucket_bits - sum(part.width for part in plan.values())
        alike = chance_of_two_alike([buckets, *hashed]) + alike / (1 << bits)
    per_core = stored / manifest.storage.cores
    entries = per_core * cells * alike
    return float((visits**SHARPNESS + entries**SHARPNESS) ** (1 / SHARPNESS))


def chance_of_two_alike(columns: Sequence[UInt64s]) -> float:
    """Return how likely two different rows of a sample have the same values in all columns."""
    rows = columns[0]
    for column in columns[1:]:
        rows = rows * _MIXED + column  # rows that differ agree by chance in 2**64
    held = np.unique(rows, return_counts=True)[1].astype(np.float64)
    count = len(rows)
    return float((held * (held - 1)).sum() / (count * (count - 1)))


def visits_in_pairs(cells: float) -> float:
    """Return the mean number of visits of a field that is visited two neighbouring cells at a time.

    It is the one with the lowest bits of the bucket number.

    Parameters
    ----------
    cells : float
        Mean number of cells that probes meet; each of them meets it rounded up or down.
    """
    least = int(cells)
    more = cells - least
    return (1 - more) * ((least + 1) // 2) + more * ((least + 2) // 2)
