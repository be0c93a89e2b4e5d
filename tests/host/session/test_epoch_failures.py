# SPDX-License-Identifier: Apache-2.0
"""Elastic joins whose cores fail: the others go on, in whatever epochs."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st
import pytest

from host import CountWindow, Epoch, TimeWindow
from host.errors import DeviceError, EpochError
from host.operators.verification import reference_pairs
from host.session.join import Join
from sim.failures.expectation import arrivals, without_lost
from tests.host.failing_device import FailingDevice, gated
from tests.host.session.test_core_failures import pairs_of, query_of, tables
from tests.host.small_bundles import write_manifest

CORES, ROWS = 4, 80

#: Rows that are staged at once, and words that wait before more are: few, so that epochs come
#: before, between and behind the failures that have been noticed.
OPTIONS = {"batch_rows": 8, "buffer_rows": 16, "low_water": 3, "result_words": 40}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return write_manifest(gated(), tmp_path_factory.mktemp("gated") / "bundle")


@st.composite
def courses(draw):
    """Epochs at rising places, and failures of one or two cores."""
    places = sorted(draw(st.lists(st.integers(0, 2 * ROWS), max_size=8)))
    order = st.permutations(range(CORES))
    given = [
        Epoch(tuple(draw(order)[: draw(st.integers(1, CORES))]), after=place) for place in places
    ]
    cores = draw(order)[: draw(st.integers(1, 2))]
    failures = sorted(draw(st.integers(1, 2 * ROWS)) for _ in cores)
    # An epoch of failed cores only is refused, which another test looks at.
    assume(all(set(epoch.cores) - set(cores) for epoch in given))
    return given, list(zip(failures, cores, strict=True))


def joined(bundle, course, query, left, right):
    """Return the join of two tables that has run while cores failed, and which did."""
    given, failures = course
    with FailingDevice(bundle, failures, piece=10) as device:
        join = Join(left, right, query, device, record=True, epochs=given, **OPTIONS)
        join.run()
    assert {failure.core for failure in join.measured.failures.failures} == {
        core for _, core in failures
    }
    return join


def expected_pairs(left, right, query):
    return list(zip(*(c.tolist() for c in reference_pairs(left, right, query)), strict=True))


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 99),
    course=courses(),
    window=st.sampled_from([CountWindow(20), TimeWindow(15)]),
)
def test_replayed_joins_have_every_pair_whatever_the_epochs(bundle, seed, course, window):
    left, right = tables(seed, ROWS)
    query = query_of(window, on_failure="replay")
    join = joined(bundle, course, query, left, right)
    assert pairs_of(join) == expected_pairs(left, right, query)
    assert join.measured.failures.lost_tuples == 0


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 99),
    course=courses(),
    window=st.sampled_from([CountWindow(20), TimeWindow(15)]),
)
def test_reported_joins_miss_what_the_record_says_and_no_more(bundle, seed, course, window):
    left, right = tables(seed, ROWS)
    query = query_of(window, on_failure="report")
    # Two failures and an epoch within one window need more lists than the ingress has.
    crowded = isinstance(window, CountWindow) and len(course[1]) == 2
    try:
        join = joined(bundle, course, query, left, right)
    except DeviceError as error:
        if not (crowded and "Too many cores failed within one window" in str(error)):
            raise
        return
    wanted, _ = without_lost(
        expected_pairs(left, right, query), join.measured.failures, arrivals(left, right)
    )
    assert pairs_of(join) == wanted


@pytest.mark.parametrize("policy", ["report", "replay"])
def test_an_epoch_begins_without_the_cores_that_have_failed(bundle, policy):
    left, right = tables(3, ROWS)
    query = query_of(TimeWindow(15), on_failure=policy)
    given = [Epoch((2, 1), after=30), Epoch((2, 3), after=140)]
    with FailingDevice(bundle, [(60, 2)]) as device:
        join = Join(left, right, query, device, record=True, epochs=given, **OPTIONS)
        join.run()
        assert [epoch.cores for epoch in join.measured.epochs] == [(2, 1), (3,)]
        assert [failure.core for failure in join.measured.failures.failures] == [2]


@pytest.mark.parametrize("policy", ["report", "replay"])
def test_if_all_cores_of_an_epoch_fail_the_inactive_ones_go_on(bundle, policy):
    left, right = tables(3, ROWS)
    query = query_of(CountWindow(30), on_failure=policy)
    with FailingDevice(bundle, [(60, 2)]) as device:
        join = Join(
            left, right, query, device, record=True, epochs=[Epoch((2,), after=20)], **OPTIONS
        )
        join.run()
        expected = expected_pairs(left, right, query)
        wanted, missing = without_lost(expected, join.measured.failures, arrivals(left, right))
        assert pairs_of(join) == wanted
        assert bool(missing) == (policy == "report")


@pytest.mark.parametrize("policy", ["report", "replay"])
def test_an_epoch_of_failed_cores_only_is_refused_behind_all_results(bundle, policy):
    left, right = tables(3, ROWS)
    query = query_of(TimeWindow(15), on_failure=policy)
    given = [Epoch((2,), after=140)]
    with FailingDevice(bundle, [(60, 2)]) as device:
        join = Join(left, right, query, device, record=True, epochs=given, **OPTIONS)
        with pytest.raises(EpochError, match=r"2"):
            join.run()


def test_the_words_of_an_epoch_leave_failed_cores_out(bundle):
    left, right = tables(5, ROWS)
    query = query_of(TimeWindow(15), on_failure="replay")
    with FailingDevice(bundle, [(60, 1)]) as device:
        join = Join(left, right, query, device, record=True, epochs=[(120, (1, 3))], **OPTIONS)
        join.run()
    assert pairs_of(join) == expected_pairs(left, right, query)
