# SPDX-License-Identifier: Apache-2.0
"""What each core holds, beside windows that are kept tuple by tuple."""

from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np

from host import CountWindow, Side, TimeWindow
from host.session.cores import CoreContents, fewest_cores
from host.session.intake import Arrived, SideTuples

CORES, ROOM = 3, 4


def manifest(cores=CORES, room=ROOM):
    storage = SimpleNamespace(cores=cores, sub_window=room, lanes=1, ring_rows=16)
    return SimpleNamespace(storage=storage, capacity=cores * room)


def arrived(arrivals):
    """Tuples given as pairs of time and side."""
    sides = {}
    for side in Side:
        places = np.array([n for n, one in enumerate(arrivals) if one[1] == side], np.int64)
        times = np.array([arrivals[n][0] for n in places], np.uint64)
        batch = SimpleNamespace(times=times)
        sides[side] = SideTuples(batch, 0, len(times), places)
    return Arrived(len(arrivals), sides)


class Kept:
    """Both windows as lists of pairs of time and core."""

    def __init__(self, window):
        self.window, self.kept = window, {side: [] for side in Side}
        self.live, self.turn = list(range(CORES)), dict.fromkeys(Side, 0)

    def begin(self, cores):
        self.live, self.turn = list(cores), dict.fromkeys(Side, 0)

    def expire(self, now):
        for side in Side:
            if isinstance(self.window, CountWindow):
                del self.kept[side][: -self.window.size]
            else:
                oldest = now - self.window.lifespan
                self.kept[side] = [one for one in self.kept[side] if one[0] >= oldest]

    def store(self, arrivals):
        """Store tuples; return whether every core had room for each of them."""
        fit = True
        for now, side in arrivals:
            core = self.live[self.turn[side] % len(self.live)]
            self.turn[side] += 1
            if isinstance(self.window, TimeWindow):
                self.expire(now)
                fit &= sum(one[1] == core for one in self.kept[side]) < ROOM
            self.kept[side].append((now, core))
            self.expire(now)
        return fit

    def holding(self, side):
        return [sum(one[1] == core for one in self.kept[side]) for core in range(CORES)]


CUTS = st.lists(
    st.tuples(
        st.permutations(range(CORES)), st.integers(1, CORES),
        st.lists(st.tuples(st.integers(0, 3), st.sampled_from(Side)), max_size=8),
    ), max_size=6,
)  # fmt: skip


@settings(max_examples=60)
@given(st.sampled_from([CountWindow(5), TimeWindow(0), TimeWindow(6)]), CUTS)
def test_contents_are_those_of_windows_kept_tuple_by_tuple(window, cuts):
    contents, kept, now = CoreContents(manifest(), window, range(CORES)), Kept(window), 0
    for order, number, steps in cuts:
        arrivals = []
        for step, side in steps:
            now += step
            arrivals.append((now, side))
        cores = order[:number]
        fits = contents.fits(arrived(arrivals), cores)
        contents.begin(cores)
        kept.begin(cores)
        if isinstance(window, TimeWindow):
            assert contents.fits(arrived(arrivals), cores) == fits
        contents.stage(arrived(arrivals))
        fit = kept.store(arrivals)
        if isinstance(window, TimeWindow):
            assert fits == fit
        assert contents.latest == (now if any(contents.counts) else 0)
        assert contents.held == tuple(len(kept.kept[side]) for side in Side)
        most = [max(pair) for pair in zip(*map(kept.holding, Side), strict=True)]
        assert contents.on == sum(most[core] > 0 or core in cores for core in range(CORES))
        assert contents.emptiest == sorted(range(CORES), key=lambda core: most[core])


def test_as_few_cores_as_always_hold_a_counted_window():
    assert [fewest_cores(manifest(5, 40), CountWindow(size)) for size in (1, 37, 38, 185, 186)] == [
        1, 1, 2, 5, 6,
    ]  # fmt: skip
    assert fewest_cores(manifest(5, 3), CountWindow(1)) == 6
    assert fewest_cores(manifest(), TimeWindow(9)) == 1
