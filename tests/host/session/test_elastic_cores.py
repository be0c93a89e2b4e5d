# SPDX-License-Identifier: Apache-2.0
"""Elastic joins: whatever is observed and decided, the answer is that of the reference."""

from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host import (
    CountWindow,
    EnergyController,
    InputRate,
    Ordering,
    PredictiveController,
    ThresholdController,
    TimeWindow,
    open_device,
)
from host.errors import CapacityError, UsageError
from host.query.cores import CoreControl
from host.query.queries import Query
from host.session.join import Join
from host.session.records import CoreChange, CoreDecision
from tests.host.session.test_adaptive_precision import Ticking
from tests.host.session.test_driver_simulated import PARAMETERS
from tests.host.simulated_bundle import simulated_bundle
from tests.host.tables import bundle, naive_join
from tests.windows import over

SHAPES = {
    "groups": {"cores": 3, "sub_window": 40, "probes": 8, "lanes": 2, "probe_bits": 4},
    "many": {"cores": 5, "sub_window": 40, "probes": 3, "probe_bits": 3},
    "two in a word": {
        "engine": "index",
        "cores": 2,
        "sub_window": 40,
        "probes": 4,
        "tuples_per_word": 2,
    },
}
LAWS = [ThresholdController, PredictiveController, lambda **how: EnergyController(300, **how)]
WINDOWS = [CountWindow(1), CountWindow(15), CountWindow(31), TimeWindow(6), TimeWindow(40)]
ORDERINGS = [
    Ordering.outer(), Ordering.relaxed(3), Ordering.none(), Ordering.inner(),
    Ordering.adaptive(12, InputRate(0.2), interval=40),
]  # fmt: skip


class Busy(Ticking):
    """A software device with a clock whose regions are busy for any share of the cycles."""

    def __init__(self, bundle, paces, shares):
        super().__init__(bundle, paces)
        self._shares = shares
        self._extra |= {"region_busy": 0, "output_busy": 0, "output_stalled": 0}

    def exchange(self, words, results, *, cycles, stamps=None):
        done = super().exchange(words, results, cycles=cycles, stamps=stamps)
        share = next(self._shares)
        self._extra["region_busy"] += 2 * self.manifest.storage.cores * done.cycles * share // 10
        return done


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


def query_of(window, elastic, ordering=None, **more):
    ordering = Ordering.outer() if ordering is None else ordering
    return Query(
        on="x", time="t", **over(window), ordering=ordering,
        elastic=elastic, **more,
    )  # fmt: skip


def found(join):
    join.run()
    return sorted(zip(*(rows.tolist() for rows in join.measured.pairs), strict=True))


def cycled(values):
    return (values[n % len(values)] for n in count())


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_whatever_is_observed_the_answer_is_that_of_the_reference(bundles, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    left, right = (table(rng, data.draw(st.integers(0, 150)), 900) for _ in range(2))
    law = data.draw(st.sampled_from(LAWS))(interval=data.draw(st.integers(1, 200)))
    query = query_of(
        data.draw(st.sampled_from(WINDOWS)), law, data.draw(st.sampled_from(ORDERINGS))
    )
    expected = sorted(naive_join(left, right, query))
    shape = data.draw(st.sampled_from(list(SHAPES)))
    cores = SHAPES[shape]["cores"]
    paces = data.draw(
        st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), min_size=1, max_size=9)
    )
    shares = data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=9))
    options = data.draw(st.sampled_from([{}, {"batch_rows": 16, "buffer_rows": 32}]))
    with Busy(bundles[shape], cycled(paces), cycled(shares)) as device:
        for _ in range(2):  # the second join begins with all cores again
            told = []
            join = Join(
                left, right, query, device, record=True, note_decision=told.append, **options
            )
            assert found(join) == expected
            assert join.counters()["illegal"] == 0
            record = join.measured.elastic
            assert all(
                change.cores == tuple(range(len(change.cores))) and 1 <= len(change.cores) <= cores
                for change in record.changes
            )
            assert [one.tuples for one in record.changes] == [
                one.after for one in join.measured.epochs
            ]
            assert record.changes == [one for one in told if isinstance(one, CoreChange)]
            decisions = [one for one in told if isinstance(one, CoreDecision)]
            assert record.observations == len(decisions)
            assert record.changed == len(record.changes)
            assert record.core_cycles <= cores * record.cycles == cores * join.measured.cycles
            if not record.forced:  # what was observed explains every decision
                control = CoreControl(law, cores)
                assert [control.see(one.seen) for one in decisions] == [
                    one.active for one in decisions
                ]


@pytest.mark.long
def test_changes_do_happen_in_the_test_above(bundles):
    rng = np.random.default_rng(5)
    left, right = table(rng, 1000, 3000), table(rng, 1000, 3000)
    shares = (0 if n // 20 % 2 else 10 for n in count())
    for window in (CountWindow(15), TimeWindow(20)):
        query = query_of(window, ThresholdController(interval=60))
        with Busy(bundles["many"], cycled([(3, 1)]), shares) as device:
            join = Join(left, right, query, device, record=True, batch_rows=16, buffer_rows=32)
            assert found(join) == sorted(naive_join(left, right, query))
        numbers = [len(change.cores) for change in join.measured.elastic.changes]
        assert min(numbers) == 1
        assert max(numbers) >= 3
        assert len(numbers) >= 3
        assert 0.1 < join.measured.elastic.saved < 0.9


def test_decisions_can_be_replayed_as_epochs(bundles):
    rng = np.random.default_rng(5)
    left, right = table(rng, 1000, 3000), table(rng, 1000, 3000)
    shares = (0 if n // 20 % 2 else 10 for n in count())
    options = {"record": True, "batch_rows": 16, "buffer_rows": 32}
    for window in (CountWindow(15), TimeWindow(20)):
        query = query_of(window, PredictiveController(interval=60))
        with Busy(bundles["many"], cycled([(3, 1)]), shares) as device:
            join = Join(left, right, query, device, **options)
            pairs = found(join)
        listed = [(change.tuples, change.cores) for change in join.measured.elastic.changes]
        assert len(listed) > 2
        with open_device(f"software:{bundles['many']}") as device:
            again = Join(left, right, query_of(window, None), device, epochs=listed, **options)
            assert found(again) == pairs
        assert again.measured.epochs == join.measured.epochs


@pytest.mark.long
def test_a_window_that_outgrows_the_cores_in_force_brings_more_of_them(bundles):
    """The device seems idle, so one core is in force; then windows grow to what five cores hold."""
    times = np.concatenate([np.arange(0, 4000, 4), 4000 + np.arange(900) // 2])
    left, right = (pa.table({"t": times, "x": times % 5}) for _ in range(2))
    query = query_of(TimeWindow(80), ThresholdController(interval=50))
    with Busy(bundles["many"], cycled([(3, 1)]), cycled([0])) as device:
        join = Join(left, right, query, device, record=True, batch_rows=16, buffer_rows=32)
        assert found(join) == sorted(naive_join(left, right, query))
    numbers = [(change.tuples, len(change.cores)) for change in join.measured.elastic.changes]
    assert min(cores for place, cores in numbers if place < 2000) == 1
    assert join.measured.elastic.forced >= 1
    assert max(cores for place, cores in numbers if place >= 2000) == 5


def test_a_window_beyond_all_cores_is_an_overflow_as_ever(bundles):
    left, right = (pa.table({"t": np.arange(600) // 30, "x": np.arange(600)}) for _ in range(2))
    query = query_of(TimeWindow(9), ThresholdController(interval=50))
    with (
        Busy(bundles["many"], cycled([(3, 1)]), cycled([0])) as device,
        pytest.raises(CapacityError),
    ):
        Join(left, right, query, device, batch_rows=16, buffer_rows=32).run()


@pytest.mark.few(2)
@pytest.mark.parametrize(("size", "least"), [(37, 1), (38, 2), (111, 3), (186, 5)])
def test_a_counted_window_keeps_as_many_cores_as_it_needs(bundles, size, least):
    rng = np.random.default_rng(2)
    left, right = table(rng, 600, 3600), table(rng, 600, 3600)
    query = query_of(CountWindow(size), ThresholdController(interval=50))
    with Busy(bundles["many"], cycled([(3, 1)]), cycled([0])) as device:
        join = Join(left, right, query, device, record=True, batch_rows=16, buffer_rows=32)
        assert found(join) == sorted(naive_join(left, right, query))
    assert join.measured.elastic.active == least


def test_a_device_without_a_clock_keeps_all_cores(bundles):
    rng = np.random.default_rng(7)
    left, right = table(rng, 2000, 2000), table(rng, 2000, 2000)
    query = query_of(CountWindow(15), True)
    with open_device(f"software:{bundles['many']}") as device:
        join = Join(left, right, query, device, record=True)
        assert found(join) == sorted(naive_join(left, right, query))
    assert (join.measured.elastic.observations, join.measured.elastic.active) == (0, 5)
    assert (
        str(join.measured.elastic) == "threshold 90/70/45 %: 5 cores, no observation was completed"
    )
    plain = query_of(CountWindow(15), False)
    with open_device(f"software:{bundles['many']}") as device:
        join = Join(left, right, plain, device)
        join.run()
    assert join.measured.elastic is None


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"ordering": Ordering.inner(in_hardware=True)}, "a change of the cores ends the rounds"),
        ({"elastic": "quick"}, "is True, a ThresholdController, .* not 'quick'"),
    ],
)
def test_what_does_not_go_with_changing_cores_is_refused(more, message):
    with pytest.raises(UsageError, match=message):
        query_of(CountWindow(3), **{"elastic": True, **more})


def test_a_join_with_a_controller_takes_no_list_of_epochs(bundles):
    rng = np.random.default_rng(1)
    rows = table(rng, 9, 9)
    with (
        open_device(f"software:{bundles['many']}") as device,
        pytest.raises(UsageError, match="either a controller of its cores"),
    ):
        Join(rows, rows, query_of(CountWindow(3), True), device, epochs=[(1, [0])])


LONG = pytest.mark.long
#: Range of times and number of rows of each part of a table: dense, rare, and dense again.
LOADS = [(600, 300), (1000, 40), (600, 300)]


@pytest.fixture(
    scope="module",
    params=["scan", pytest.param("index, two in a word", marks=LONG)],
)
def simulator(request, tmp_path_factory):
    """URI of a small accelerator, simulated, which other tests compile as well."""
    return simulated_bundle(
        PARAMETERS[request.param], tmp_path_factory.mktemp("simulator") / "bundle"
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize("window", [CountWindow(15), TimeWindow(9)])
@pytest.mark.parametrize("law", [LAWS[0], *(pytest.param(one, marks=LONG) for one in LAWS[1:])])
def test_the_simulated_accelerator_answers_as_a_loop_does(simulator, window, law):
    rng = np.random.default_rng(7)
    left, right = (
        pa.table({"t": np.sort(np.concatenate([part * 1000 + rng.integers(0, span, rows)
                                               for part, (span, rows) in enumerate(LOADS)])),
                  "x": rng.integers(0, 6, sum(rows for _, rows in LOADS))})
        for _ in range(2)
    )  # fmt: skip
    query = query_of(window, law(interval=50))
    with open_device(simulator) as device:
        options = {"record": True, "batch_rows": 16, "buffer_rows": 32}
        join = Join(left, right, query, device, **options)
        assert found(join) == sorted(naive_join(left, right, query))
        assert join.counters()["illegal"] == 0
        assert join.measured.elastic.observations > 3
        if law is ThresholdController:  # the others have reasons to keep all cores here
            assert join.measured.elastic.changes
