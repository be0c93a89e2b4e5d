# SPDX-License-Identifier: Apache-2.0
"""A pace of the input: no tuple is offered before it arrives, and answers stay the same."""

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host import CountWindow, EnergyController, TimeWindow, UsageError, open_device
from host.protocol.codecs import WordCodec
from host.query.queries import Query
from host.session.join import Join
from tests.host.session.test_elastic_cores import Busy, cycled
from tests.host.tables import bundle, naive_join
from tests.windows import over

CORES = {"cores": 3, "sub_window": 40, "probes": 2, "probe_bits": 4}


class Clocked(Busy):
    """A device whose exchanges take as many cycles as are asked for, and which notes its tuples.

    ``offered`` has, for each exchange, the cycle of its begin and how many tuples had been taken or
    were offered by then.
    """

    def __init__(self, bundle):
        super().__init__(bundle, cycled([(1, 1)]), cycled([3]))
        self.offered, self._cycle, self._taken = [], 0, 0
        self._codec = WordCodec(self.manifest)

    def exchange(self, words, results, *, cycles, stamps=None):
        counts = self._codec.tuple_counts(words)
        self.offered.append((self._cycle, self._taken + int(counts.sum())))
        before = dict(self._extra)
        done = super().exchange(words, results, cycles=cycles, stamps=stamps)
        self._extra |= {"cycles": before["cycles"] + cycles}
        self._cycle += cycles
        self._taken += int(counts[: done.accepted].sum())
        return done._replace(cycles=cycles)


@pytest.fixture(scope="module")
def shape(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundles")
    return bundle(folder / "paced", keys=("x16",), timestamp_bits=20, **CORES)


def tables(rng, rows, span):
    return [
        pa.table({"t": np.sort(rng.integers(0, span, rows)), "x": rng.integers(0, 6, rows)})
        for _ in range(2)
    ]


def query_of(window, elastic=None):
    return Query(on="x", time="t", **over(window), elastic=elastic)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_no_tuple_is_offered_before_it_arrives(shape, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    left, right = tables(rng, data.draw(st.integers(1, 120)), 300)
    pace = data.draw(st.sampled_from([1, 2.5, 40, "200/3"]))
    window = data.draw(st.sampled_from([CountWindow(9), TimeWindow(15)]))
    law = data.draw(st.sampled_from([None, EnergyController(500, interval=300)]))
    with Clocked(shape) as device:
        join = Join(left, right, query_of(window, law), device, record=True, pace=pace)
        join.run()
    pairs = sorted(zip(*(rows.tolist() for rows in join.measured.pairs), strict=True))
    assert pairs == sorted(naive_join(left, right, query_of(window)))
    times = np.sort(np.concatenate([side["t"].to_numpy() for side in (left, right)]))
    cycles = 200 / 3 if pace == "200/3" else pace
    due = (times - times[0]) * cycles
    for cycle, offered in device.offered:
        assert (due[:offered] <= cycle).all()
    assert join.measured.cycles >= due[-1]
    assert join.measured.longest_wait >= 0


def test_a_device_that_is_too_slow_makes_tuples_wait(shape):
    rng = np.random.default_rng(3)
    left, right = tables(rng, 300, 300)
    waits = []
    for pace in (1, 500):
        with Clocked(shape) as device:
            join = Join(left, right, query_of(TimeWindow(9)), device, pace=pace)
            join.run()
            waits.append(join.measured.longest_wait)
    assert waits[0] > waits[1]  # this one takes 16 words in an exchange of 128 cycles
    join = Join(left, right, query_of(TimeWindow(9)), Clocked(shape))
    assert join.measured.longest_wait is None


def test_a_device_without_a_clock_can_have_no_pace(shape):
    rng = np.random.default_rng(3)
    left, right = tables(rng, 30, 30)
    with (
        open_device(f"software:{shape}") as device,
        pytest.raises(UsageError, match="has no clock, so its input cannot have a pace"),
    ):
        Join(left, right, query_of(TimeWindow(9)), device, pace=3).run()


@pytest.mark.parametrize("pace", [0, -1, "x", True])
def test_a_pace_is_a_positive_number(shape, pace):
    rng = np.random.default_rng(3)
    left, right = tables(rng, 30, 30)
    with (
        open_device(f"software:{shape}") as device,
        pytest.raises(UsageError, match="cycles for a unit of time must be above 0"),
    ):
        Join(left, right, query_of(TimeWindow(9)), device, pace=pace).run()
