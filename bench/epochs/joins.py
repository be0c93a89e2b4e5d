# SPDX-License-Identifier: Apache-2.0
"""Joins of random streams under epochs, compared with the reference join pair by pair."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from host.devices import open_device
from host.query.ordering import Ordering
from host.query.queries import Query
from host.reference.arrivals import Arrivals
from host.reference.join import reference_join
from host.reference.predicate import EQUAL, DifferenceBand
from host.reference.window import CountWindow
from host.session.join import Join

__all__ = ["Compared", "RandomStream", "compare", "random_epochs"]

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


def random_epochs(generator, places, cores, fewest):
    """Return epochs at some places of a stream, of random cores, but at least ``fewest``."""
    return [
        (place, generator.permutation(cores)[: generator.integers(fewest, cores + 1)].tolist())
        for place in places
    ]


class RandomStream:
    """Random tuples of two sides in the order of their times, and their join.

    Parameters
    ----------
    window : CountWindow or TimeWindow
        Window of either side. Times differ by 2 on the average.
    tuples : int
        Tuples of both sides.
    generator : numpy.random.Generator
        Source of everything that is random.
    """

    def __init__(self, window, *, tuples, generator):
        side = generator.integers(0, 2, tuples)
        keys = generator.integers(0, KEYS, tuples)
        times = np.cumsum(generator.integers(0, 5, tuples))
        order = np.lexsort((side, times))  # on a tie R comes first
        self.window = window
        self.side, self.keys, self.times = side[order], keys[order], times[order]

    def join(self, device, epochs):
        """Join the tuples on a device; return the join, which has run."""
        left, right = (
            pa.table({"t": self.times[self.side == n], "x": self.keys[self.side == n]})
            for n in (0, 1)
        )
        counted = isinstance(self.window, CountWindow)
        query = Query(
            time="t",
            on="x",
            rows=self.window.size if counted else None,
            within=None if counted else self.window.lifespan,
            ordering=Ordering.relaxed(8),
        )
        join = Join(left, right, query, device, record=True, epochs=epochs)
        for _ in join.batches():
            pass
        return join

    def compared(self, join):
        """Compare a join with the reference; return the :class:`Compared`."""
        arrivals = Arrivals(
            side=self.side.astype(np.uint8),
            keys={"x": self.keys},
            timestamp=self.times.astype(np.int64),
        )
        expected = reference_join(arrivals, DifferenceBand({"x": EQUAL}), self.window)
        both = (expected.rows(arrivals), join.measured.pairs)
        wanted, found = (np.sort(one * len(self.side) + other) for one, other in both)
        once = np.unique(found)
        return Compared(
            pairs=len(wanted),
            lost=len(np.setdiff1d(wanted, once, assume_unique=True)),
            repeated=len(found) - len(once),
            wrong=len(np.setdiff1d(once, wanted, assume_unique=True)),
            epochs=len(join.measured.epochs),
            superseded=len(join.measured.superseded),
        )


def compare(uri, window, *, tuples, epochs, seed, fewest=1):
    """Join two random tables under random epochs; return the :class:`Compared`.

    Parameters
    ----------
    uri : str
        Device with one key field and timestamps.
    window : CountWindow or TimeWindow
        Window of either side.
    tuples, epochs : int
        Tuples of both sides, and epochs at random places.
    seed : int
        Seed of everything that is random.
    fewest : int
        Fewest active cores of an epoch.
    """
    generator = np.random.default_rng(seed)
    stream = RandomStream(window, tuples=tuples, generator=generator)
    with open_device(uri) as device:
        places = np.sort(generator.integers(0, tuples, epochs)).tolist()
        given = random_epochs(generator, places, device.manifest.storage.cores, fewest)
        return stream.compared(stream.join(device, given))
