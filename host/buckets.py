# SPDX-License-Identifier: Apache-2.0
"""Which part every compared field takes in the bucket of a tuple, for an index engine."""

from collections.abc import Mapping
from dataclasses import dataclass

from host.manifest import Manifest
from host.predicate import OPEN, Bounds

__all__ = ["Coordinate", "bucket_plan"]


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

    Fields whose difference is fixed are hashed: a probe visits one bucket. If there are none,
    fields whose difference is bounded make a grid, with cells at least as wide as the bounds are
    apart, so that a probe visits one or two cells in each direction. Other fields, and all of a
    predicate without any bounds, take no part: their probes read the whole window.

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
    if fixed:
        return plan | {name: Coordinate(hashed=True) for name in fixed}

    bits = {key.name: key.bits for key in manifest.keys}
    shifts = {name: span.bit_length() for name, span in spans.items()}
    grid = [name for name, shift in shifts.items() if shift < bits[name]]
    left, place = manifest.index.bucket_bits, 0
    for n, name in enumerate(grid):
        width = min(left // (len(grid) - n), bits[name] - shifts[name])
        plan[name] = Coordinate(shifts[name], width, place)
        place, left = place + width, left - width
    return plan
