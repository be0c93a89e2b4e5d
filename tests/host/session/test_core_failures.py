# SPDX-License-Identifier: Apache-2.0
"""Joins on an accelerator whose cores fail: exactly what the record says is missing."""

import numpy as np
import pyarrow as pa
import pytest

from host import CountWindow, Ordering, TimeWindow
from host.errors import DeviceError, UsageError
from host.operators.verification import reference_pairs
from host.query.queries import Query, Term
from host.session.join import Join
from sim.failures.expectation import arrivals, without_lost
from tests.host.failing_device import FailingDevice, gated
from tests.host.small_bundles import write_manifest
from tests.windows import over

ROWS = 300


def tables(seed, rows=ROWS):
    """Return two tables that are sorted by time."""
    rng = np.random.default_rng(seed)
    return [
        pa.table(
            {
                "t": pa.array(np.cumsum(rng.integers(0, 3, rows))),
                "x": pa.array(rng.integers(0, 12, rows)),
            }
        )
        for _ in range(2)
    ]


def query_of(window, *, low=-1, high=1, **options):
    """Return the query for rows of both tables whose values are close."""
    terms = (Term("x", "x", low, high),)
    return Query(band=terms, time="t", **over(window), **options)


def pairs_of(join):
    left, right = join.measured.pairs
    return list(zip(left.tolist(), right.tolist(), strict=True))


@pytest.fixture
def bundle(tmp_path):
    return write_manifest(gated(), tmp_path / "bundle")


@pytest.mark.few(8)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("window", [CountWindow(60), TimeWindow(40)], ids=str)
def test_exactly_the_pairs_with_tuples_of_the_core_are_missing(bundle, seed, window):
    rng = np.random.default_rng(seed)
    left, right = tables(seed)
    core, place = int(rng.integers(4)), int(rng.integers(20, 2 * ROWS))
    ordering = [Ordering.outer(), Ordering.relaxed(5), Ordering.relaxed(2)][seed % 3]
    query = query_of(window, on_failure="report", ordering=ordering)
    expected = reference_pairs(left, right, query)
    expected = list(zip(*(column.tolist() for column in expected), strict=True))
    with FailingDevice(bundle, [(place, core)]) as device:
        join = Join(left, right, query, device, record=True)
        join.run()
        found, record = pairs_of(join), join.measured.failures
        assert [failure.core for failure in record.failures] == [core]
        wanted, missing = without_lost(expected, record, arrivals(left, right))
        assert found == wanted
        # The next query begins without the core, and nothing is missing.
        again = Join(left, right, query, device, record=True)
        again.run()
        assert pairs_of(again) == expected
        assert again.measured.failures.failures == []
    # A core that fails amid the stream leaves something missing, of the tuples of one window.
    if place < ROWS:
        assert missing
        assert 0 < record.lost_tuples < 2 * ROWS


@pytest.mark.parametrize("seed", range(6))
def test_two_cores_that_fail_one_soon_after_the_other(bundle, seed):
    rng = np.random.default_rng(100 + seed)
    left, right = tables(seed)
    first = int(rng.integers(20, 400))
    second = first + int(rng.integers(0, 60))
    cores = rng.permutation(4)[:2].tolist()
    query = query_of(CountWindow(50), on_failure="report")
    expected = reference_pairs(left, right, query)
    expected = list(zip(*(column.tolist() for column in expected), strict=True))
    with FailingDevice(bundle, [(first, cores[0]), (second, cores[1])]) as device:
        join = Join(left, right, query, device, record=True)
        join.run()
        record = join.measured.failures
    assert sorted(failure.core for failure in record.failures) == sorted(cores)
    wanted, missing = without_lost(expected, record, arrivals(left, right))
    assert missing
    assert pairs_of(join) == wanted


def test_by_default_a_failure_ends_the_join(bundle):
    left, right = tables(1)
    with FailingDevice(bundle, [(100, 2)]) as device:
        with pytest.raises(DeviceError, match="Core 2 of device .* failed"):
            Join(left, right, query_of(CountWindow(60)), device).run()
        again = Join(left, right, query_of(CountWindow(60)), device, record=True)
        again.run()
        expected = reference_pairs(left, right, again.query)
        assert pairs_of(again) == list(zip(*(c.tolist() for c in expected), strict=True))


def test_a_window_that_does_not_fit_the_other_cores_ends_the_join(bundle):
    left, right = tables(1)
    query = query_of(CountWindow(150), on_failure="report")
    with (
        FailingDevice(bundle, [(100, 2)]) as device,
        pytest.raises(DeviceError, match="A window of 150 tuples does not fit 3 cores"),
    ):
        Join(left, right, query, device).run()


def test_the_last_core_cannot_be_left_out(tmp_path):
    bundle = write_manifest(gated(cores=1), tmp_path / "bundle")
    left, right = tables(1)
    query = query_of(CountWindow(20), on_failure="report")
    with (
        FailingDevice(bundle, [(100, 0)]) as device,
        pytest.raises(DeviceError, match="No core is left"),
    ):
        Join(left, right, query, device).run()


def test_policies_that_cannot_be_kept_are_refused():
    with pytest.raises(UsageError, match="must be one of 'raise', 'report', 'replay', not 'no'"):
        query_of(CountWindow(5), on_failure="no")
    with pytest.raises(UsageError, match="A left join does not go with on_failure='report'"):
        query_of(CountWindow(5), on_failure="report", how="left")
