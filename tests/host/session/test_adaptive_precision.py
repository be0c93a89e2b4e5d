# SPDX-License-Identifier: Apache-2.0
"""Joins of adaptive precision: the right answer in the promised order, and the goal held."""

from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdl.parameters import JoinParameters, KeyField
from host import (
    CountWindow,
    InputRate,
    Latency,
    Manifest,
    Ordering,
    Queue,
    Side,
    TimeWindow,
    open_device,
)
from host.__main__ import main
from host.devices import Device, Exchange
from host.devices.software import SoftwareDevice
from host.operators.verification import compare_pairs, reference_pairs
from host.protocol.codecs import WordCodec
from host.query.queries import Query
from host.session.control import AdaptivePrecision
from host.session.decoder import result_decoder
from host.session.join import Join
from host.session.staging import Staging
from tests.host.simulated_bundle import simulated_bundle
from tests.host.tables import bundle, naive_join
from tests.windows import over

SCAN = JoinParameters.of(
    cores=2, sub_window=256, probes=16, timestamp_bits=24, probe_bits=6, fan_in=2,
    keys=(KeyField(name="f0", bits=16),),
)  # fmt: skip
#: Tuples per cycle of both sides together that each device is asked for. The scan takes 16 probes
#: in a pass, so 0.125 ask for a period of about 8 while 256 tuples of a side are in the window.
RATE, WINDOW = 0.125, 256
#: Cycles of a measurement.
INTERVAL = 2_048
#: Cycles after the load has changed from which on each goal is reached again. For a rate these are
#: two measurements: one that still holds some of the old load, and one that does not. A queue has
#: room for the input of 64,000 cycles at that rate, of which it uses half before it asks for more.
FOLLOWED = {InputRate(RATE): 2 * INTERVAL, Queue(8_000, RATE): 40_000}


class Ticking(SoftwareDevice):
    """A software device with a clock and counters of any kind.

    Parameters
    ----------
    bundle : path
        Bundle.
    paces : iterator of (int, int)
        Cycles that pass in each exchange for a word, and in how many of four a word is offered.
    """

    def __init__(self, bundle, paces):
        super().__init__(bundle)
        self._paces = paces
        self._extra = {"cycles": 0, "ingress_busy": 0, "ingress_stalled": 0}

    def exchange(self, words, results, *, cycles, stamps=None):
        # Few words and results at a time, as in so many cycles.
        most = max(1, min(len(words), cycles // 8))
        done = super().exchange(words[:most], results, cycles=cycles, stamps=stamps)
        pace, offered = next(self._paces)
        passed = pace * max(1, done.accepted)
        self._extra["cycles"] += passed
        self._extra["ingress_busy"] += min(done.accepted, passed)
        self._extra["ingress_stalled"] += max(0, passed * offered // 4 - done.accepted)
        return Exchange(done.accepted, done.produced, passed)

    def counters(self):
        return {**super().counters(), **self._extra}


SHAPES = {
    "groups": {"cores": 3, "sub_window": 20, "probes": 8, "lanes": 2, "probe_bits": 4},
    "one core": {"cores": 1, "sub_window": 64, "probes": 1, "probe_bits": 2},
    "two in a word": {
        "engine": "index",
        "cores": 2,
        "sub_window": 32,
        "probes": 4,
        "tuples_per_word": 2,
    },
}


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundles")
    return {
        name: bundle(folder / name.replace(" ", "_"), keys=("x16",), timestamp_bits=20, **shape)
        for name, shape in SHAPES.items()
    }


def table(rng, rows, span, keys=6):
    times = np.sort(rng.integers(0, max(1, span), rows))
    return pa.table({"t": times, "x": rng.integers(0, keys, rows)})


def found(join):
    join.run()
    return list(zip(*(rows.tolist() for rows in join.measured.pairs), strict=True))


def places(left, right):
    """For each side and row: its place among all arrivals."""
    order = np.lexsort(
        (np.r_[np.zeros(len(left)), np.ones(len(right))], np.r_[left["t"], right["t"]])
    )
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[: len(left)], place[len(left) :]


def furthest_back(pairs, left, right):
    """Return how many probes of a side a result at most stands behind a later probe's result."""
    of_left, of_right = places(left, right)
    rows = np.array(pairs, np.int64).reshape(-1, 2)
    left_probes = of_left[rows[:, 0]] > of_right[rows[:, 1]]
    most = 0
    for probes in (rows[left_probes, 0], rows[~left_probes, 1]):
        if len(probes):
            most = max(most, int((np.maximum.accumulate(probes) - probes).max()))
    return most


@settings(max_examples=20)
@given(st.data())
def test_whatever_is_measured_the_answer_and_its_order_are_as_promised(bundles, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    left, right = (table(rng, data.draw(st.integers(0, 400)), 500) for _ in range(2))
    window = data.draw(st.sampled_from([CountWindow(1), CountWindow(15), TimeWindow(6)]))
    most = data.draw(st.integers(2, 20))
    hold = data.draw(
        st.sampled_from([InputRate(0.3), InputRate(0.02), Latency(300), Queue(60, 0.2)])
    )
    ordering = Ordering.adaptive(most, hold, interval=data.draw(st.integers(1, 300)))
    query = Query(on="x", time="t", **over(window), ordering=ordering)
    paces = data.draw(
        st.lists(st.tuples(st.integers(0, 60), st.integers(0, 4)), min_size=1, max_size=20)
    )
    shape = data.draw(st.sampled_from(list(SHAPES)))
    with Ticking(bundles[shape], (paces[n % len(paces)] for n in count())) as device:
        for trace in (False, True):  # the device is used again
            join = Join(left, right, query, device, trace=trace, record=True)
            pairs = found(join)
            assert sorted(pairs) == sorted(naive_join(left, right, query))
            assert furthest_back(pairs, left, right) < most
            record = join.measured.precision
            assert all(1 <= change.period <= record.bound <= most for change in record.changes)
            ends = [change.tuples for change in record.changes]
            assert ends == sorted(ends)
            assert record.changed == len(record.changes) <= record.measurements
            assert record.held <= record.measurements
            assert join.counters()["marks"] == 3 + record.changed


@pytest.mark.long
def test_changes_do_happen_in_the_test_above(bundles):
    paces = ((pace, 4) for n in count() for pace in (1 + 60 * (n // 200 % 2),))
    rng = np.random.default_rng(5)
    left, right = table(rng, 3000, 3000), table(rng, 3000, 3000)
    query = Query(
        on="x", time="t", rows=15,
        ordering=Ordering.adaptive(12, InputRate(0.1), interval=100),
    )  # fmt: skip
    with Ticking(bundles["groups"], paces) as device:
        join = Join(left, right, query, device, record=True)
        pairs = found(join)
    assert sorted(pairs) == sorted(naive_join(left, right, query))
    periods = [change.period for change in join.measured.precision.changes]
    assert {1, 12} <= set(periods)
    assert len(periods) >= 6


def test_a_join_that_is_cut_after_a_change_leaves_the_device_usable(bundles):
    rng = np.random.default_rng(6)
    left, right = table(rng, 900, 900), table(rng, 900, 900)
    query = Query(
        on="x", time="t", rows=15,
        ordering=Ordering.adaptive(12, InputRate(0.1), interval=50),
    )  # fmt: skip
    with Ticking(bundles["groups"], ((1 + n % 50, 4) for n in count())) as device:
        for cut in range(12):
            join = Join(left, right, query, device, record=True, batch_rows=16, buffer_rows=64)
            reader = join.batches()
            for _ in range(cut):
                next(reader)
            reader.close()
        assert sorted(found(Join(left, right, query, device))) == sorted(
            naive_join(left, right, query)
        )


def test_a_device_without_a_clock_keeps_the_first_period(bundles):
    rng = np.random.default_rng(7)
    left, right = table(rng, 2000, 2000), table(rng, 2000, 2000)
    for most, first in ((2, 2), (8, 8), (12, 8)):
        query = Query(
            on="x", time="t", rows=15,
            ordering=Ordering.adaptive(most, InputRate(0.1), interval=1),
        )  # fmt: skip
        with open_device(f"software:{bundles['groups']}") as device:
            join = Join(left, right, query, device, record=True)
            pairs = found(join)
        assert sorted(pairs) == sorted(naive_join(left, right, query))
        assert (join.measured.precision.first, join.measured.precision.measurements) == (first, 0)
        assert "no measurement" in str(join.measured.precision)


class Counted:
    """A device of which there are only counters, for a controller that is stepped by hand."""

    allocate = Device.allocate

    def __init__(self, manifest):
        self.manifest = manifest
        self.now = dict.fromkeys(
            ("cycles", "tuples_r", "tuples_s", "ingress_busy", "ingress_stalled"), 0
        )

    def counters(self):
        return {name: value % (1 << 48) for name, value in self.now.items()}

    def pass_(self, cycles, tuples):
        self.now["cycles"] += cycles
        self.now["tuples_r"] += tuples
        self.now["ingress_busy"] += tuples
        self.now["ingress_stalled"] += cycles - tuples


class Steps:
    """An :class:`AdaptivePrecision` with what it stands between."""

    def __init__(self, folder, hold):
        self.device = Counted(Manifest.load(folder))
        codec = WordCodec(self.device.manifest)
        ordering = Ordering.adaptive(8, hold, interval=100)
        self.staging = Staging(self.device, codec.input.columns)
        decoder = result_decoder(
            self.device.manifest, Ordering(8), CountWindow(9), detailed=True, changes=True
        )
        decoder.stars.stage({Side.R: np.arange(5000), Side.S: np.zeros(0, np.int64)})
        self.adaptive = AdaptivePrecision(
            self.device, ordering, self.staging, decoder, marks=0, accepted=0
        )
        self.staging.append(
            codec.pack_tuples(
                np.zeros(5000, np.uint8), {"f0": np.zeros(5000, np.int64)}, np.zeros(5000, np.int64)
            )
        )

    def exchange(self, cycles, tuples, marks=0):
        """Let so many words be taken in so many cycles, and so many marks arrive."""
        self.staging.offer()
        self.staging.accept(tuples)
        self.device.pass_(cycles, tuples)
        self.staging.see_marks(marks)
        self.adaptive.settle(cycles, tuples)
        self.adaptive.steer(0)


def test_a_measurement_begins_with_the_mark_of_the_last_change(bundles):
    steps = Steps(bundles["groups"], InputRate(0.5))
    record = steps.adaptive.record
    steps.exchange(10, 5)  # a measurement begins behind the configuration's mark
    for _ in range(2):
        steps.exchange(300, 300)
    assert record.measurements == 2
    assert [change.period for change in record.changes] == [5]
    for _ in range(5):
        steps.exchange(200, 20)  # the change is still on its way
    assert record.measurements == 2
    steps.exchange(200, 20, marks=1)
    assert record.measurements == 2
    steps.exchange(200, 200)
    assert record.measurements == record.held == 3


def test_a_queue_also_grows_while_a_change_is_on_its_way(bundles):
    steps = Steps(bundles["groups"], Queue(400, 0.5))
    record = steps.adaptive.record
    steps.exchange(10, 5)
    for _ in range(2):
        steps.exchange(300, 300)
    assert [change.period for change in record.changes] == [5]
    for _ in range(3):
        steps.exchange(200, 10)  # 270 tuples more than are taken
    steps.exchange(1, 1, marks=1)
    steps.exchange(400, 200)
    assert (record.measurements, record.held) == (3, 2)
    assert record.period == 7  # 5 * (269.5 + 200 - 200) / 200, rounded up


def test_counters_that_begin_again_at_zero_are_told_apart(bundles):
    steps = Steps(bundles["groups"], InputRate(0.5))
    steps.device.now["tuples_r"] = (1 << 48) - 450
    steps.exchange(10, 5)
    for _ in range(2):
        steps.exchange(300, 300)
    assert steps.adaptive.record.held == 2
    assert steps.adaptive.record.period == 5


@pytest.fixture(scope="module")
def simulator(tmp_path_factory):
    """URI of a simulated scan; built once, or found in the cache."""
    return simulated_bundle(SCAN, tmp_path_factory.mktemp("simulator") / "bundle")


class Watched(Device):
    """A device that notes, after each exchange, what its counters say.

    That is the cycles in which an input word was taken or had to wait, and the tuples taken.
    Reading counters takes cycles as well, in which nothing is offered.
    """

    def __init__(self, device):
        self._device, self.uri, self.manifest = device, device.uri, device.manifest
        self.taken = [(0, 0)]

    def exchange(self, words, results, *, cycles, stamps=None):
        done = self._device.exchange(words, results, cycles=cycles, stamps=stamps)
        counters = self._device.counters()
        offered = counters["ingress_busy"] + counters["ingress_stalled"]
        self.taken.append((offered, counters["tuples_r"] + counters["tuples_s"]))
        return done

    def counters(self):
        return self._device.counters()

    def close(self):
        self._device.close()


def rates(taken, begin, end):
    """Return the rate over each measurement's length of cycles from one to another tuple."""
    cycles, tuples = (np.array(column) for column in zip(*taken, strict=True))
    span = 4 * INTERVAL
    starts = [cycle for cycle, taken_then in taken if begin <= taken_then]
    starts = [cycle for cycle in starts if np.interp(cycle + span, cycles, tuples) < end]
    return [
        (np.interp(cycle + span, cycles, tuples) - np.interp(cycle, cycles, tuples)) / span
        for cycle in starts
    ]


def growing(rows, before, after):
    """Two tables in the second half of which a window of WINDOW units holds more rows."""
    rng = np.random.default_rng(8)
    steps = np.repeat([WINDOW // before, WINDOW // after], [rows // 2, rows - rows // 2])
    times = np.cumsum(steps)
    return [pa.table({"t": times, "x": rng.integers(0, 1000, rows)}) for _ in range(2)]


@pytest.mark.long
@pytest.mark.parametrize("hold", FOLLOWED, ids=lambda hold: type(hold).__name__)
def test_a_rate_is_held_again_after_the_window_has_grown(simulator, hold):
    rows = 16_000
    left, right = growing(rows, 16, 256)
    query = Query(
        on="x", time="t", within=WINDOW, sorted=True,
        ordering=Ordering.adaptive(16, hold, interval=INTERVAL),
    )  # fmt: skip
    with open_device(simulator) as inner:
        device = Watched(inner)
        join = Join(left, right, query, device, record=True)
        pairs = found(join)
    assert compare_pairs(
        join.measured.pairs, reference_pairs(left, right, query), ordered=False
    ).agrees
    assert furthest_back(pairs, left, right) < 16
    periods = {change.tuples: change.period for change in join.measured.precision.changes}
    early = [period for tuples, period in periods.items() if tuples < rows]
    late = [period for tuples, period in periods.items() if tuples > rows]
    assert early[-1] == 1  # before the change the finest order is fast enough
    assert 8 <= late[-1] <= 12  # after it, one probe in a pass gives an eighth of the rate
    # The window has grown when as many tuples as it holds have come after the middle.
    grown = rows + 2 * 256
    cycle = next(cycle for cycle, tuples in device.taken if tuples >= grown)
    again = next(tuples for cycles, tuples in device.taken if cycles >= cycle + FOLLOWED[hold])
    held = rates(device.taken, again, 2 * rows)
    assert len(held) > 20
    assert min(held) >= RATE
    fixed = rates(device.taken, 4000, rows)
    assert min(fixed) >= RATE


@pytest.mark.long
def test_a_queue_of_the_required_rate_never_outgrows_its_bound(simulator):
    """Reckoned from the counters of the device after every exchange, not from measurements."""
    left, right = growing(16_000, 16, 256)
    bound = 8_000
    query = Query(
        on="x", time="t", within=WINDOW, sorted=True,
        ordering=Ordering.adaptive(16, Queue(bound, RATE), interval=INTERVAL),
    )  # fmt: skip
    with open_device(simulator) as inner:
        device = Watched(inner)
        found(Join(left, right, query, device))
    waiting, most = 0.0, 0.0
    for (before, some), (after, more) in zip(device.taken[1:], device.taken[2:], strict=False):
        waiting = max(0.0, waiting + RATE * (after - before) - (more - some))
        most = max(most, waiting)
    assert 0 < most <= bound


ROUNDS = SCAN.with_(probes=2, lanes=4, rounds=True)


@pytest.fixture(scope="module")
def simulator_with_rounds(tmp_path_factory):
    """URI of a simulated scan that sends results in rounds."""
    return simulated_bundle(ROUNDS, tmp_path_factory.mktemp("rounds") / "bundle")


@pytest.mark.parametrize(
    ("hold", "last"),
    # With rounds of q tuples, a probe of a full window takes WINDOW / 2 / q stars, a cycle each.
    [(InputRate(1 / 50), 4), (Queue(64, 1 / 50), 4), (InputRate(1), 16), (InputRate(1 / 500), 1)],
    ids=str,
)
def test_rounds_are_as_short_as_the_goal_permits(simulator_with_rounds, hold, last):
    left, right = growing(1_600, 16, 256)
    query = Query(
        on="x", time="t", within=WINDOW, sorted=True,
        ordering=Ordering.inner(16, hold=hold, interval=512),
    )  # fmt: skip
    with open_device(simulator_with_rounds) as device:
        for _ in range(2):  # the device is used again
            join = Join(left, right, query, device, record=True)
            pairs = found(join)
            assert compare_pairs(
                join.measured.pairs, reference_pairs(left, right, query), ordered=False
            ).agrees
            assert in_order_of_rounds(pairs, left, right, 16, ROUNDS.cores)
            record = join.measured.precision
            periods = [change.period for change in record.changes]
            assert all(period in (1, 2, 4, 8, 16) for period in periods)
            assert (record.bound, record.first, record.period) == (16, 16, last)
            assert join.counters()["marks"] == 3 + record.changed
            if last == 4:
                assert 1 in periods  # while the window is small, the finest order is fast enough


def in_order_of_rounds(pairs, left, right, size, cores):
    """Return whether pairs come by later row, then by rounds of that many stored rows of a core."""
    of_left, of_right = places(left, right)
    keys = []
    for row, other in pairs:
        by_left = of_left[row] > of_right[other]
        later, stored = (of_left[row], other) if by_left else (of_right[other], row)
        keys.append((later, stored // cores // size))
    return keys == sorted(keys)


@settings(max_examples=10)
@given(st.data())
def test_random_rows_come_in_rounds_however_often_these_change(simulator_with_rounds, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    left, right = (table(rng, data.draw(st.integers(0, 300)), 400, keys=3) for _ in range(2))
    window = data.draw(st.sampled_from([CountWindow(1), CountWindow(150), TimeWindow(40)]))
    most = data.draw(st.sampled_from([2, 8, 1 << 20]))
    hold = data.draw(st.sampled_from([InputRate(0.1), InputRate(0.02), Queue(2, 0.05)]))
    query = Query(
        on="x", time="t", **over(window),
        ordering=Ordering.inner(most, hold=hold, interval=data.draw(st.integers(1, 300))),
    )  # fmt: skip
    with open_device(simulator_with_rounds) as device:
        join = Join(left, right, query, device, record=True)
        pairs = found(join)
    assert sorted(pairs) == sorted(naive_join(left, right, query))
    assert in_order_of_rounds(pairs, left, right, min(most, join.measured.precision.bound), 2)


@pytest.mark.parametrize("ordering", ["inner:16:rate=0.02", "inner:16:hardware", "inner"])
def test_the_command_verifies_what_an_ordering_promises(
    simulator_with_rounds, ordering, tmp_path, capsys
):
    files = []
    for side, rows in zip(("left", "right"), growing(1_600, 16, 256), strict=True):
        pq.write_table(rows, tmp_path / f"{side}.parquet")
        files += [f"--{side}", str(tmp_path / f"{side}.parquet")]
    question = ["--time", "t", "--on", "x", "--within", str(WINDOW), "--ordering", ordering]
    output = ["--output", str(tmp_path / "pairs.parquet"), "--device", simulator_with_rounds]
    assert main(["join", *files, *question, *output, "--verify"]) == 0
    said = capsys.readouterr().err
    assert "agree with the reference join" in said
    assert ("precision: 0.02 tuples per cycle held" in said) == ("rate" in ordering)


def test_a_device_without_rounds_leaves_the_inner_order_to_the_host(bundles):
    rng = np.random.default_rng(11)
    left, right = table(rng, 200, 200), table(rng, 200, 200)
    query = Query(on="x", time="t", rows=15, ordering=Ordering.inner(8, hold=InputRate(1)))
    with open_device(f"software:{bundles['groups']}") as device:
        join = Join(left, right, query, device)
        assert found(join) == naive_join(left, right, query)
    assert join.measured.precision is None


class Stamping(Device):
    """A device that keeps the cycles in which it took tuples."""

    def __init__(self, device):
        self._device, self.uri, self.manifest = device, device.uri, device.manifest
        self._codec = WordCodec(device.manifest)
        self._taken = []

    @property
    def taken(self):
        return np.concatenate(self._taken)

    def exchange(self, words, results, *, cycles, stamps=None):
        done = self._device.exchange(words, results, cycles=cycles, stamps=stamps)
        is_tuple = self._codec.tuple_counts(words[: done.accepted]) == 1
        self._taken.append(stamps.accepted[: done.accepted][is_tuple].astype(np.int64))
        return done

    def counters(self):
        return self._device.counters()

    def close(self):
        self._device.close()


@pytest.mark.long
@pytest.mark.parametrize("latency", [900, 1_600])
def test_a_latency_is_held_as_stamps_show_it(simulator, latency):
    rng = np.random.default_rng(9)
    rows = 12_000
    left, right = (
        pa.table({"t": np.arange(rows), "x": rng.integers(0, 1000, rows)}) for _ in range(2)
    )
    query = Query(
        on="x", time="t", rows=256, sorted=True,
        ordering=Ordering.adaptive(64, Latency(latency), interval=INTERVAL),
    )  # fmt: skip
    with open_device(simulator) as inner:
        device = Stamping(inner)
        join = Join(left, right, query, device, trace=True)
        result = join.run()
    processing = result.latency.processing
    # Inserted words do not disturb the trace.
    of_left, of_right = places(left, right)
    later = np.maximum(of_left[result.pairs[0]], of_right[result.pairs[1]])
    began = result.latency.emitted - result.latency.visiting
    assert np.array_equal(device.taken[later], began)
    assert join.measured.precision.bound == 16
    last = max(change.tuples for change in join.measured.precision.changes)
    settled = processing[last + 1000 :]
    assert len(settled) > 5000
    assert settled.mean() <= latency
    assert join.measured.precision.period < 16
