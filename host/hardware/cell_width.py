# SPDX-License-Identifier: Apache-2.0
"""How wide the cells of an index's grid should be, for tuples that lie as a sample of them does.

A probe takes a cycle for every visit of one or two cells, and a cycle for every entry in them.
Wide cells keep visits few: that is best where most cells are empty, or windows small. Where tuples
lie close together, most of the entries of such cells are no match: with narrower ones, a probe
visits more cells and reads less beside its bounds.
"""

from collections.abc import Mapping

import numpy as np

from host.encode.spread import Spread, tightened
from host.hardware.buckets import Coordinate, bucket_plan
from host.manifest import Manifest
from host.reference.exact import UInt64s
from host.reference.predicate import OPEN, Bounds

__all__ = ["MOST_COARSER", "MOST_FINER", "expected_cycles", "fitted_plan"]

#: How many times cells are doubled at most, and halved. Cells four times as wide as the bounds are
#: apart leave at most a tenth of the visits of a field to save.
MOST_COARSER, MOST_FINER = 2, 4
#: Other cells must promise so much less work, for the promise rests on a sample.
WORTHWHILE = 0.9


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
        As for :func:`host.hardware.buckets.bucket_plan`, whose plan has cells about as wide as the
        bounds are apart.
    sample : mapping of str to array of uint64
        Values of the key fields of some tuples, modulo 2**64.
    stored : int
        Tuples of a side's window.
    """
    plans = {
        finer: bucket_plan(manifest, bounds, spreads, choice, finer=finer)
        for finer in range(-MOST_COARSER, MOST_FINER + 1)
    }
    if any(part.hashed for part in plans[0].values()) or plans[0] == plans[1]:
        return None
    cycles = {
        finer: expected_cycles(manifest, plan, bounds, spreads, sample, stored)
        for finer, plan in plans.items()
    }
    best = min(cycles, key=lambda finer: cycles[finer])
    return plans[best] if cycles[best] < WORTHWHILE * cycles[0] else None


def expected_cycles(
    manifest: Manifest,
    plan: Mapping[str, Coordinate],
    bounds: Mapping[str, Bounds],
    spreads: Mapping[str, Spread],
    sample: Mapping[str, UInt64s],
    stored: int,
) -> float:
    """Return the cycles that a probe is expected to take.

    Parameters
    ----------
    plan : mapping of str to Coordinate
        The parts of all fields in the bucket number, none of them hashed.
    """
    buckets = np.zeros(len(next(iter(sample.values()))), np.uint64)
    cells, visits = 1.0, 1.0
    for key in manifest.keys:
        part = plan[key.name]
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
    held = np.unique(buckets, return_counts=True)[1].astype(np.float64)
    count = len(buckets)
    alike = (held * (held - 1)).sum() / (count * (count - 1))  # chance that two share a bucket
    per_core = stored / manifest.storage.cores
    return max(visits, per_core * cells * alike)


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
