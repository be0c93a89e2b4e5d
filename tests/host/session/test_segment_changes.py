# SPDX-License-Identifier: Apache-2.0
"""Joins in which the cores that store change: the answer stays, and changes come where they may."""

from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host import CountWindow, InputRate, Ordering, TimeWindow, open_device
from host.errors import UsageError, WindowOverflowError
from host.query.cores import Segment
from host.query.queries import Query
from host.session.join import Join
from tests.host.session.test_adaptive_precision import Ticking
from tests.host.session.test_driver_simulated import PARAMETERS
from tests.host.simulated_bundle import simulated_bundle
from tests.host.tables import bundle, naive_join
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


@st.composite
def changes(draw, cores, tuples):
    """Any number of changes, some of them at the same place or behind the end."""
    places = sorted(draw(st.lists(st.integers(0, tuples + 5), max_size=12)))
    order = st.permutations(range(cores))
    return [(place, draw(order)[: draw(st.integers(1, cores))]) for place in places]


def begun(left, right, window, segments):
    """The segments that begin, tuple by tuple: none while a window needs the third one before."""
    arrivals = sorted(
        (int(now), side) for side, rows in enumerate((left, right)) for now in rows["t"].to_numpy()
    )
    held, number, waiting, told = ([], []), 0, list(segments), []
    for place, (_, side) in enumerate(arrivals):
        while waiting and waiting[0][0] <= place:
            oldest = min((some[0] for some in held if some), default=number)
            if isinstance(window, CountWindow) and oldest < number - 1:
                break
            told.append(Segment(place, tuple(waiting.pop(0)[1])))
            number += 1
        held[side].append(number)
        if isinstance(window, CountWindow):
            del held[side][: -window.size]
    return told


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_whichever_cores_store_the_answer_is_that_of_the_reference(bundles, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    left, right = (table(rng, data.draw(st.integers(0, 200)), 500) for _ in range(2))
    window = data.draw(st.sampled_from(WINDOWS))
    ordering = data.draw(st.sampled_from(ORDERINGS))
    query = Query(on="x", time="t", **over(window), ordering=ordering)
    expected = sorted(naive_join(left, right, query))
    shape = data.draw(st.sampled_from(list(SHAPES)))
    paces = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=9))
    options = data.draw(st.sampled_from([{}, {"batch_rows": 16, "buffer_rows": 32}]))
    with Ticking(bundles[shape], ((paces[n % len(paces)], 4) for n in count())) as device:
        for _ in range(2):  # the second join begins where the first has left the turns
            segments = data.draw(changes(SHAPES[shape]["cores"], len(left) + len(right)))
            join = Join(left, right, query, device, record=True, segments=segments, **options)
            assert found(join) == expected
            assert join.measured.segments == begun(left, right, window, segments)
            assert join.counters()["illegal"] == 0
            changed = 0 if join.measured.precision is None else join.measured.precision.changed
            assert join.counters()["marks"] == 3 + changed


class Rotating:
    """A schedule that decides while the join runs: every so many tuples, the next cores."""

    def __init__(self, cores, distance):
        self.cores, self.distance = cores, distance
        self.asked = []

    def next(self, staged):
        """The next segment, which begins some tuples ahead."""
        self.asked.append(staged)
        turn = len(self.asked)
        return Segment(
            staged + self.distance, tuple((turn + n) % self.cores for n in range(1 + turn % 2))
        )


@pytest.mark.parametrize(("distance", "rows"), [(1, 140), (7, 650), (64, 650)])
def test_a_schedule_is_asked_while_the_join_runs(bundles, distance, rows):
    rng = np.random.default_rng(distance)
    left, right = table(rng, rows + 50, 3 * rows), table(rng, rows - 50, 3 * rows)
    query = Query(on="x", time="t", within=12)
    schedule = Rotating(5, distance)
    with open_device(f"software:{bundles['many']}") as device:
        join = Join(
            left, right, query, device, record=True, segments=schedule,
            batch_rows=16, buffer_rows=64,
        )  # fmt: skip
        assert found(join) == sorted(naive_join(left, right, query))
    places = [segment.after for segment in join.measured.segments]
    assert places == list(range(distance, 2 * rows, distance))
    assert schedule.asked == [0, *places]


def test_a_schedule_that_knows_nothing_yet_is_asked_again(bundles):
    class Late:
        def __init__(self):
            self.answers = [None, None, Segment(3, (1,))]

        def next(self, staged):
            return self.answers.pop(0) if self.answers else None

    rng = np.random.default_rng(3)
    left, right = table(rng, 20_000, 100_000), table(rng, 20_000, 100_000)
    query = Query(on="x", time="t", within=12)
    with open_device(f"software:{bundles['groups']}") as device:
        join = Join(left, right, query, device, segments=Late(), buffer_rows=512)
        join.run()
    (segment,) = join.measured.segments
    assert segment.cores == (1,)
    assert 0 < segment.after < 40_000  # its place had passed, so it began with the next tuple


def test_a_join_that_is_cut_leaves_no_turns_behind(bundles):
    rng = np.random.default_rng(6)
    left, right = table(rng, 900, 2700), table(rng, 900, 2700)
    query = Query(on="x", time="t", rows=60, ordering=Ordering.outer())
    expected = sorted(naive_join(left, right, query))
    changed = [(place, [place % 3, (place + 1) % 3]) for place in range(0, 1800, 50)]
    with Ticking(bundles["groups"], ((1 + n % 50, 4) for n in count())) as device:
        for cut in range(14):
            join = Join(left, right, query, device, batch_rows=16, buffer_rows=64, segments=changed)
            reader = join.batches()
            for _ in range(cut):
                next(reader)
            reader.close()
            # This window needs the cores that the join above has left out.
            later = Join(left, right, query, device, record=True)
            assert found(later) == expected
            assert later.counters()["illegal"] == 0


def test_a_join_without_changes_has_no_segments(bundles):
    rng = np.random.default_rng(1)
    query = Query(on="x", time="t", rows=3)
    with open_device(f"software:{bundles['groups']}") as device:
        join = Join(table(rng, 9, 9), table(rng, 9, 9), query, device)
        assert join.measured.segments == []
        join.run()
        assert join.measured.segments == []


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ([(0, [])], "at least one core"),
        ([(0, [0, 1]), (5, [3])], "each of 0 to 2 at most once"),
        ([(9, [1, 1])], "each of 0 to 2 at most once"),
        ([(9, [1])], "does not fit 1 cores, which hold 40"),
    ],
)
def test_wrong_cores_are_told_before_any_row_is_taken(bundles, segments, message):
    rng = np.random.default_rng(1)
    query = Query(on="x", time="t", rows=50)
    with (
        open_device(f"software:{bundles['groups']}") as device,
        pytest.raises(UsageError, match=message),
    ):
        Join(table(rng, 9, 9), table(rng, 9, 9), query, device, segments=segments)


def test_a_core_that_gets_more_than_it_holds_is_an_overflow(bundles):
    """Each segment begins with its first core, which gets one tuple more than an even share."""
    left = pa.table({"t": np.arange(300), "x": np.zeros(300, np.int64)})
    right = pa.table({"t": np.arange(300), "x": np.zeros(300, np.int64)})
    query = Query(on="x", time="t", rows=120)
    with open_device(f"software:{bundles['groups']}") as device:
        Join(left, right, query, device).run()
        with pytest.raises(WindowOverflowError):
            Join(left, right, query, device, segments=[(301, [0, 1, 2])]).run()


@pytest.fixture(
    scope="module",
    params=["scan", pytest.param("index, two in a word", marks=pytest.mark.long)],
)
def simulator(request, tmp_path_factory):
    """URI of a small accelerator, simulated, which other tests compile as well."""
    return simulated_bundle(
        PARAMETERS[request.param], tmp_path_factory.mktemp("simulator") / "bundle"
    )


@pytest.mark.timeout(600)
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_the_simulated_accelerator_answers_as_a_loop_does(simulator, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    left, right = (table(rng, data.draw(st.integers(0, 250)), 900) for _ in range(2))
    window = data.draw(st.sampled_from([CountWindow(1), CountWindow(15), TimeWindow(9)]))
    ordering = data.draw(st.sampled_from(ORDERINGS))
    query = Query(on="x", time="t", **over(window), ordering=ordering)
    expected = sorted(naive_join(left, right, query))
    with open_device(simulator) as device:
        for _ in range(2):
            segments = data.draw(changes(3, len(left) + len(right)))
            join = Join(left, right, query, device, record=True, segments=segments)
            assert found(join) == expected
            assert join.measured.segments == begun(left, right, window, segments)
            assert join.counters()["illegal"] == 0
