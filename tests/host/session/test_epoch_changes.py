# SPDX-License-Identifier: Apache-2.0
"""Elastic joins: the answer stays, and each epoch takes effect where its gamma has passed."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from queue import SimpleQueue
from threading import Event
from time import sleep

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host import CountWindow, Epoch, InputRate, Ordering, TimeWindow, open_device
from host.errors import EpochError, UsageError
from host.query.queries import Query
from host.session.join import Join
from tests.halves import half
from tests.host.session.test_adaptive_precision import Ticking
from tests.host.session.test_driver_simulated import PARAMETERS
from tests.host.simulated_bundle import simulated_bundle
from tests.host.tables import bundle, naive_join, naive_results
from tests.windows import over

SHAPES = {
    "groups": {"cores": 3, "sub_window": 40, "probes": 8, "lanes": 2, "probe_bits": 4},
    "many": {"cores": 5, "sub_window": 40, "probes": 3, "probe_bits": 3},
    "one core": {"cores": 1, "sub_window": 64, "probes": 1, "probe_bits": 2},
    "two in a word": {
        "engine": "index",
        "cores": 2,
        "sub_window": 40,
        "probes": 4,
        "tuples_per_word": 2,
    },
}
WINDOWS = [CountWindow(1), CountWindow(15), CountWindow(31), TimeWindow(6)]
#: Orderings of a device with a clock; the last one inserts words of its own.
ORDERINGS = [
    Ordering.outer(), Ordering.relaxed(3), Ordering.relaxed(12), Ordering.none(),
    Ordering.adaptive(12, InputRate(0.2), interval=40),
]  # fmt: skip


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
    return sorted(zip(*(rows.tolist() for rows in join.measured.pairs), strict=True))


def query_over(window, **changes):
    return Query(on="x", time="t", **over(window), **changes)


@st.composite
def epochs(draw, cores, tuples, span):
    """Epochs whose gammas are places, times, or both; many pass at the same tuple."""
    count = draw(st.integers(0, 12))
    places = sorted(draw(st.integers(0, tuples + 5)) for _ in range(count))
    times = sorted(draw(st.integers(-3, span + 3)) for _ in range(count))
    order = st.permutations(range(cores))
    drawn, number = [], 0
    for place, time in zip(places, times, strict=True):
        kind = draw(st.sampled_from(["place", "time", "both"]))
        given = draw(st.sampled_from([None, 1, 5]))
        number += given or 1
        drawn.append(
            Epoch(
                tuple(draw(order)[: draw(st.integers(1, cores))]),
                after=0 if kind == "time" else place,
                beyond=None if kind == "place" else time,
                number=None if given is None else number,
            )
        )
    return drawn


def arrivals(left, right):
    return sorted(
        (int(now), side) for side, rows in enumerate((left, right)) for now in rows["t"].to_numpy()
    )


def taken(left, right, window, given):
    """The epochs that take effect and those that never do, tuple by tuple."""
    held, number, told, superseded = ([], []), 0, [], []
    last, due, waiting = 0, None, []
    for epoch in given:
        last = last + 1 if epoch.number is None else epoch.number
        waiting.append(replace(epoch, number=last))
    for place, (now, side) in enumerate(arrivals(left, right)):
        while waiting and place >= waiting[0].after:
            if waiting[0].beyond is not None and now <= waiting[0].beyond:
                break
            superseded += [] if due is None else [due]
            due = waiting.pop(0)
        oldest = min((some[0] for some in held if some), default=number)
        if due is not None and (not isinstance(window, CountWindow) or oldest >= number - 1):
            told.append(replace(due, after=place))
            number, due = number + 1, None
        held[side].append(number)
        if isinstance(window, CountWindow):
            del held[side][: -window.size]
    return told, superseded


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_whichever_cores_are_active_the_answer_is_that_of_the_reference(bundles, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    span = data.draw(st.sampled_from([5, 500]))
    left, right = (table(rng, data.draw(st.integers(0, 200)), span) for _ in range(2))
    shape = data.draw(st.sampled_from(list(SHAPES)))
    window = data.draw(st.sampled_from(WINDOWS if span == 500 else WINDOWS[:3]))
    query = query_over(window, ordering=data.draw(st.sampled_from(ORDERINGS)))
    expected = sorted(naive_join(left, right, query))
    options = data.draw(st.sampled_from([{}, {"batch_rows": 16, "buffer_rows": 32}]))
    given = data.draw(epochs(SHAPES[shape]["cores"], len(left) + len(right), span))
    paces = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=9))
    with Ticking(bundles[shape], ((paces[n % len(paces)], 4) for n in count())) as device:
        join = Join(left, right, query, device, record=True, epochs=given, **options)
        for _ in range(2):  # the epochs of a list begin anew with each execution
            assert found(join) == expected
            assert (join.measured.epochs, join.measured.superseded) == taken(
                left, right, window, given
            )
            assert join.counters()["illegal"] == 0
            changed = 0 if join.measured.precision is None else join.measured.precision.changed
            assert join.counters()["marks"] == 3 + changed


@pytest.mark.parametrize(("factor", "unit"), [(1, "s"), (1000, "ms")])
def test_a_gamma_is_a_value_of_the_left_order_column(bundles, factor, unit):
    """The right column has another unit, and both begin late."""
    begin = 1_700_000_000
    left = pa.table(
        {"t": pa.array([begin + n for n in range(0, 60, 2)], pa.timestamp("s")), "x": [1] * 30}
    )
    right = pa.table(
        {
            "t": pa.array([(begin + n) * factor for n in range(1, 60, 2)], pa.timestamp(unit)),
            "x": [1] * 30,
        }
    )
    gamma = left["t"][10].as_py()  # of the tuple number 20
    with open_device(f"software:{bundles['groups']}") as device:
        join = Join(
            left, right, query_over(CountWindow(20)), device, record=True,
            epochs=[Epoch((2, 0), beyond=gamma), Epoch((1, 0), beyond=begin + 31)],
        )  # fmt: skip
        assert found(join) == sorted(naive_join(left, right, query_over(CountWindow(20))))
    assert [epoch.after for epoch in join.measured.epochs] == [21, 32]


def test_streams_find_the_same_gamma(bundles):
    rng = np.random.default_rng(8)
    left, right = table(rng, 300, 900), table(rng, 300, 900)
    query = query_over(TimeWindow(9), sorted=True)
    given = [Epoch((n % 3,), beyond=100 * n) for n in range(9)]
    readers = [
        pa.RecordBatchReader.from_batches(one.schema, one.to_batches(17)) for one in (left, right)
    ]
    with open_device(f"software:{bundles['groups']}") as device:
        join = Join(*readers, query, device, record=True, epochs=given, buffer_rows=64)
        assert found(join) == sorted(naive_join(left, right, query))
    assert join.measured.epochs == taken(left, right, query.window, given)[0]
    assert len(join.measured.epochs) == 9


class Eager:
    """A controller that always wants the next cores at once."""

    def __init__(self, cores):
        self.cores, self.asked = cores, []

    def next(self, staged):
        """The next core, from the place at hand on."""
        self.asked.append(staged)
        return Epoch((len(self.asked) % self.cores,), after=staged)


def test_a_schedule_that_never_ends_is_asked_once_for_each_place(bundles):
    rng = np.random.default_rng(2)
    left, right = table(rng, 100, 500), table(rng, 100, 500)
    query, schedule = query_over(TimeWindow(9)), Eager(5)
    with open_device(f"software:{bundles['many']}") as device:
        join = Join(left, right, query, device, record=True, epochs=schedule)
        assert found(join) == sorted(naive_join(left, right, query))
    assert schedule.asked == sorted(set(schedule.asked))
    assert [epoch.number for epoch in join.measured.epochs] == list(
        range(1, len(join.measured.epochs) + 1)
    )


class Rotating:
    """A schedule that decides while the join runs: every so many tuples, the next cores."""

    def __init__(self, cores, distance):
        self.cores, self.distance = cores, distance
        self.asked = []

    def next(self, staged):
        """The next epoch, which begins some tuples ahead."""
        self.asked.append(staged)
        turn = len(self.asked)
        cores = tuple((turn + n) % self.cores for n in range(1 + turn % 2))
        return Epoch(cores, after=staged + self.distance)


@pytest.mark.few(1)
@pytest.mark.parametrize(("distance", "rows"), [(1, 140), (7, 650), (64, 650)])
def test_a_schedule_is_asked_while_the_join_runs(bundles, distance, rows):
    rng = np.random.default_rng(distance)
    left, right = table(rng, rows + 50, 3 * rows), table(rng, rows - 50, 3 * rows)
    query = Query(on="x", time="t", within=12)
    schedule = Rotating(5, distance)
    with open_device(f"software:{bundles['many']}") as device:
        join = Join(
            left, right, query, device, record=True, epochs=schedule,
            batch_rows=16, buffer_rows=64,
        )  # fmt: skip
        assert found(join) == sorted(naive_join(left, right, query))
    places = [epoch.after for epoch in join.measured.epochs]
    assert places == list(range(distance, 2 * rows, distance))
    assert schedule.asked == [0, *places]


def test_a_schedule_that_knows_nothing_yet_is_asked_again(bundles):
    class Late:
        def __init__(self):
            self.answers = [None, None, Epoch((1,), after=3)]

        def next(self, staged):
            return self.answers.pop(0) if self.answers else None

    rng = np.random.default_rng(3)
    left, right = table(rng, 20_000, 100_000), table(rng, 20_000, 100_000)
    query = Query(on="x", time="t", within=12)
    with open_device(f"software:{bundles['groups']}") as device:
        join = Join(left, right, query, device, epochs=Late(), buffer_rows=512)
        join.run()
    (epoch,) = join.measured.epochs
    assert epoch.cores == (1,)
    assert 0 < epoch.after < 40_000  # its place had passed, so it began with the next tuple


@pytest.mark.long
def test_a_join_that_is_cut_leaves_no_turns_behind(bundles):
    rng = np.random.default_rng(6)
    left, right = table(rng, 900, 2700), table(rng, 900, 2700)
    query = Query(on="x", time="t", rows=60, ordering=Ordering.outer())
    expected = sorted(naive_join(left, right, query))
    changed = [(place, [place % 3, (place + 1) % 3]) for place in range(0, 1800, 50)]
    with Ticking(bundles["groups"], ((1 + n % 50, 4) for n in count())) as device:
        for cut in range(14):
            join = Join(left, right, query, device, batch_rows=16, buffer_rows=64, epochs=changed)
            reader = join.batches()
            for _ in range(cut):
                next(reader)
            reader.close()
            # This window needs the cores that the join above has left out.
            later = Join(left, right, query, device, record=True)
            assert found(later) == expected
            assert later.counters()["illegal"] == 0


def test_a_join_without_changes_has_no_epochs(bundles):
    rng = np.random.default_rng(1)
    query = Query(on="x", time="t", rows=3)
    with open_device(f"software:{bundles['groups']}") as device:
        join = Join(table(rng, 9, 9), table(rng, 9, 9), query, device)
        assert join.measured.epochs == []
        join.run()
        assert join.measured.epochs == []


WRONG = [
    (Epoch(()), "at least one core, each of 0 to 2 at most once, not "),
    (Epoch((0, 3)), "each of 0 to 2"),
    (Epoch((0, -1)), "each of 0 to 2"),
    (Epoch((1, 1)), "at most once"),
    (Epoch((0, 1), number=0), "its number is not above"),
    (Epoch((1,)), "one of its 1 cores would hold 60 tuples, and each has room"),
]  # fmt: skip


@pytest.mark.parametrize(("epoch", "message"), WRONG)
def test_a_wrong_epoch_of_a_list_is_told_before_any_row_is_taken(bundles, epoch, message):
    rng = np.random.default_rng(1)
    with (
        open_device(f"software:{bundles['groups']}") as device,
        pytest.raises(EpochError, match=f"Epoch .* is refused: .*{message}") as caught,
    ):
        Join(
            table(rng, 9, 9), table(rng, 9, 9), query_over(CountWindow(60)), device,
            epochs=[Epoch((0, 1)), epoch],
        )  # fmt: skip
    assert caught.value.number == (2 if epoch.number is None else epoch.number)
    assert isinstance(caught.value, UsageError)


@pytest.mark.few(2)
@pytest.mark.parametrize(("epoch", "message", "how"), half(WRONG, ["full", "inner", "left"], of=3))
def test_what_comes_before_a_refused_epoch_is_handed_on(bundles, epoch, message, how):
    """And no row comes alone that a later one could match."""
    rng = np.random.default_rng(5)
    left, right = table(rng, 400, 900, keys=40), table(rng, 400, 900, keys=40)
    query = query_over(CountWindow(60), how=how)

    class Wrong:
        def next(self, staged):
            return (
                Epoch((0, 2), after=100, number=4)
                if not staged
                else epoch
                if staged >= 300
                else None
            )

    batches = []
    with open_device(f"software:{bundles['groups']}") as device:
        options = {"batch_rows": 16, "buffer_rows": 32}
        join = Join(left, right, query, device, record=True, epochs=Wrong(), **options)
        with pytest.raises(EpochError, match=message) as caught:
            batches.extend(join.batches())
        place = caught.value.place
        assert f"after {place} tuples" in str(caught.value)
        assert 300 <= place < 800
        assert [epoch.number for epoch in join.measured.epochs] == [4]
        rows = list(zip(*(rows.tolist() for rows in join.measured.pairs), strict=True))
        # The same device goes on with the next join.
        later = Join(left, right, query_over(CountWindow(60)), device, record=True)
        assert found(later) == sorted(naive_join(left, right, query))
    before = [side for _, side in arrivals(left, right)[:place]]
    counts = before.count(0), before.count(1)
    short = [rows.slice(0, count) for rows, count in zip((left, right), counts, strict=True)]
    results = naive_results(left, right, query)
    expected = naive_join(*short, query)
    assert [pair for pair in rows if -1 not in pair] == expected
    for row, other in rows:
        if other == -1:
            assert (row, None) in results
        if row == -1:
            assert (None, other) in results
    assert len(batches) > 1


def test_an_uneven_share_is_refused_at_its_place_before_it_overflows(bundles):
    """Each epoch begins with its first core, which gets one tuple more than an even share."""
    rows = pa.table({"t": np.arange(300), "x": np.zeros(300, np.int64)})
    query = query_over(CountWindow(120), ordering=Ordering.relaxed(8))
    with open_device(f"software:{bundles['groups']}") as device:
        even = Join(rows, rows, query, device, record=True, epochs=[(300, [0, 1, 2])])
        assert found(even) == sorted(naive_join(rows, rows, query))
        uneven = Join(rows, rows, query, device, record=True, epochs=[(301, [0, 1, 2])])
        with pytest.raises(EpochError, match="would hold 41 tuples") as caught:
            uneven.run()
    assert caught.value.place == 301


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": [Epoch((0,), beyond="soon")]}, "of type int64, not 'soon'"),
        ({"epochs": [Epoch((0,), beyond=float("nan"))]}, "of type int64, not nan"),
    ],
)
def test_options_that_make_no_sense_are_told(bundles, options, message):
    rng = np.random.default_rng(1)
    with (
        open_device(f"software:{bundles['groups']}") as device,
        pytest.raises(UsageError, match=message),
    ):
        Join(table(rng, 9, 9), table(rng, 9, 9), query_over(CountWindow(5)), device, **options)


def test_threads_ask_for_epochs_while_the_join_runs(bundles):
    """As STRETCH's concurrent calls: any thread asks at any time, and each epoch takes effect."""
    requests, ended, asked, staged = SimpleQueue(), Event(), [], []

    class Requests:
        def next(self, place):
            staged.append(place)
            if not requests.empty():
                asked.append(requests.get())
                return Epoch(asked[-1])
            return None

    def ask(seed):
        rng = np.random.default_rng(seed)
        for number in range(20):
            while len(staged) < 2 * number and not ended.is_set():
                sleep(0.001)
            requests.put(tuple(rng.permutation(5)[: rng.integers(2, 6)].tolist()))

    rng = np.random.default_rng(3)
    left, right = (table(rng, 2000, 4000) for _ in range(2))
    query = query_over(CountWindow(15))
    with open_device(f"software:{bundles['many']}") as device, ThreadPoolExecutor(3) as threads:
        callers = [threads.submit(ask, seed) for seed in range(3)]
        options = {"batch_rows": 16, "buffer_rows": 32}
        join = Join(left, right, query, device, record=True, epochs=Requests(), **options)
        try:
            assert found(join) == sorted(naive_join(left, right, query))
        finally:
            ended.set()
        for caller in callers:
            caller.result(timeout=60)
    by_number = sorted([*join.measured.epochs, *join.measured.superseded], key=number_of)
    assert [epoch.cores for epoch in by_number] == asked[: len(by_number)]
    assert len(by_number) >= len(asked) - 1  # the last one may come behind the last tuple
    assert len(join.measured.epochs) > 10


def number_of(epoch):
    return epoch.number


@pytest.fixture(scope="module")
def simulator(tmp_path_factory):
    """URI of a small accelerator, simulated, which other tests compile as well."""
    return simulated_bundle(
        PARAMETERS["index, two in a word"], tmp_path_factory.mktemp("simulator") / "bundle"
    )


@pytest.mark.timeout(600)
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_the_simulated_accelerator_answers_as_a_loop_does(simulator, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    left, right = (table(rng, data.draw(st.integers(0, 250)), 900) for _ in range(2))
    window = data.draw(st.sampled_from([CountWindow(1), CountWindow(15), TimeWindow(9)]))
    query = query_over(window, ordering=data.draw(st.sampled_from(ORDERINGS)))
    with open_device(simulator) as device:
        given = data.draw(epochs(3, len(left) + len(right), 900))
        join = Join(left, right, query, device, record=True, epochs=given)
        assert found(join) == sorted(naive_join(left, right, query))
        assert (join.measured.epochs, join.measured.superseded) == taken(left, right, window, given)
        assert join.counters()["illegal"] == 0
