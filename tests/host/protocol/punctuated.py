# SPDX-License-Identifier: Apache-2.0
"""The whole answer of an accelerator, group by group, from the matches of the reference join."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from host.protocol.punctuation import Grouper
from host.query.ordering import Ordering
from host.reference.arrivals import Arrivals, Side
from host.reference.join import Matches

__all__ = [
    "Group",
    "punctuate",
]

Int64s = npt.NDArray[np.int64]


class Group(NamedTuple):
    """Probes whose results leave together.

    Attributes
    ----------
    side : Side
        Side of the probes.
    probes : array of int64
        The probes, as indices into the arrivals.
    star : bool
        Whether a star of this side follows.
    matches : array of int64
        Their results, as indices into the matches, in the order of emission.
    """

    side: Side
    probes: Int64s
    star: bool
    matches: Int64s


def punctuate(
    matches: Matches,
    arrivals: Arrivals,
    ordering: Ordering,
    *,
    probes: int = 1,
    limit: int | None = None,
    probe_bits: int | None = None,
    cores: int = 1,
) -> Iterator[Group]:
    """Say which results leave together, in which order, and where the stars stand.

    The sequence is what an accelerator emits for ``arrivals`` and a final FLUSH, provided the
    period is at most ``probes``; with a longer one, or none, results may move freely between two
    stars of their side.

    Parameters
    ----------
    matches : Matches
        Result of :func:`host.reference.join.reference_join`.
    arrivals : Arrivals
        What was joined.
    ordering : Ordering
        Precision.
    probes, limit, probe_bits
        As for :class:`host.protocol.punctuation.Grouper`.
    cores : int
        Join cores: inside a group, results are ordered by core, age of the stored tuple, probe.

    Yields
    ------
    Group
        In the order of emission.
    """
    grouper = Grouper(ordering, probes=probes, limit=limit, probe_bits=probe_bits)
    closed = [grouper.feed(arrivals.side), grouper.finish()]
    members = {side: np.flatnonzero(arrivals.side == side) for side in Side}
    stored = arrivals.ordinals[matches.stored]
    order = np.lexsort((matches.probe, stored // cores, stored % cores))
    by_side = {side: order[arrivals.side[matches.probe[order]] == side] for side in Side}
    ends = {
        side: np.cumsum(np.concatenate([part.probes[part.side == side] for part in closed]))
        for side in Side
    }
    queues = {}
    for side in Side:
        number = arrivals.ordinals[matches.probe[by_side[side]]]
        group = np.searchsorted(ends[side], number, side="right")
        by_side[side] = by_side[side][np.argsort(group, kind="stable")]
        limits = np.searchsorted(np.sort(group), np.arange(len(ends[side]) + 1))
        queues[side] = iter(zip(np.r_[0, ends[side]], limits[:-1], limits[1:], strict=False))
    for part in closed:
        for number, count, star in zip(part.side, part.probes, part.star, strict=True):
            side = Side(int(number))
            begin, low, high = next(queues[side])
            some = members[side][begin : begin + count]
            yield Group(side, some, bool(star), by_side[side][low:high])
