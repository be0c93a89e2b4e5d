# SPDX-License-Identifier: Apache-2.0
"""Joins under random epochs, compared with the reference join pair by pair."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from host.device import open_device
from host.join.driver import TableJoin
from host.query.join_query import JoinQuery, Term
from host.query.ordering import Ordering
from host.reference.arrivals import Arrivals
from host.reference.join import reference_join
from host.reference.predicate import EQUAL, DifferenceBand

__all__ = ["Compared", "compare", "random_epochs"]

#: Different values of the compared field.
KEYS = 50


@dataclass(frozen=True)
class Compared:
    """What a join under epochs answered.

    Parameters
    ----------
    pairs : int
        Pairs of the reference.
    lost, repeated, wrong : int
        Pairs that the join lacks, that it has more than once, and that are none.
    epochs, superseded : int
        Epochs that took effect, and those that a later one replaced before they could.
    """

    pairs: int
    lost: int
    repeated: int
    wrong: int
    epochs: int
    superseded: int

    @property
    def bad(self):
        """Pairs that are lost, repeated or wrong."""
        return self.lost + self.repeated + self.wrong


def random_epochs(generator, cores, fewest, count, tuples):
    """Return ``count`` epochs at random places, of random cores, but at least ``fewest``."""
    places = np.sort(generator.integers(0, tuples, count)).tolist()
    return [
        (place, generator.permutation(cores)[: generator.integers(fewest, cores + 1)].tolist())
        for place in places
    ]


def compare(uri, window, *, tuples, epochs, seed, fewest=1):
    """Join two random tables under random epochs; return the :class:`Compared`.

    Parameters
    ----------
    uri : str
        Device with one key field and timestamps.
    window : CountWindow or TimeWindow
        Window of either side. Times differ by 2 on the average.
    tuples, epochs : int
        Tuples of both sides, and epochs.
    seed : int
        Seed of everything that is random.
    fewest : int
        Fewest active cores of an epoch.
    """
    generator = np.random.default_rng(seed)
    side = generator.integers(0, 2, tuples)
    keys = generator.integers(0, KEYS, tuples)
    times = np.cumsum(generator.integers(0, 5, tuples))
    order = np.lexsort((side, times))  # on a tie R comes first
    side, keys, times = side[order], keys[order], times[order]
    left, right = (pa.table({"t": times[side == n], "x": keys[side == n]}) for n in (0, 1))
    query = JoinQuery(
        terms=[Term("x", "x")], order=("t", "t"), window=window, ordering=Ordering.relaxed(8)
    )
    with open_device(uri) as device:
        given = random_epochs(generator, device.manifest.storage.cores, fewest, epochs, tuples)
        join = TableJoin(left, right, query, device, record=True, epochs=given)
        for _ in join.batches():
            pass
    arrivals = Arrivals(
        side=side.astype(np.uint8), keys={"x": keys}, timestamp=times.astype(np.int64)
    )
    expected = reference_join(arrivals, DifferenceBand({"x": EQUAL}), window).rows(arrivals)
    wanted, found = (np.sort(one * tuples + other) for one, other in (expected, join.pairs))
    once = np.unique(found)
    return Compared(
        pairs=len(wanted),
        lost=len(np.setdiff1d(wanted, once, assume_unique=True)),
        repeated=len(found) - len(once),
        wrong=len(np.setdiff1d(once, wanted, assume_unique=True)),
        epochs=len(join.epochs),
        superseded=len(join.superseded),
    )
