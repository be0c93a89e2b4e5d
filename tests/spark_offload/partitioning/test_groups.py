# SPDX-License-Identifier: Apache-2.0
"""Rows with equal columns are divided evenly, however many of them one key has."""

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host.query.queries import Query
from spark_offload.partitioning.ranges import OrderSummary, RangeRule, splitjoin_order_summary
from spark_offload.partitioning.tagged import SLOTS


def summary_of(times, slots):
    batch = pa.record_batch(
        {
            "side": pa.array(np.arange(len(times)) % 2, pa.int8()),
            "time": pa.array(times, pa.int64()),
            "slot": pa.array(slots, pa.int16()),
        }
    )
    cut = [batch.slice(begin, 1_000) for begin in range(0, len(times), 1_000)]
    return OrderSummary.of(splitjoin_order_summary(iter(cut)))


def rule(ranges, within):
    query = Query(on="k", time="t", within=within)
    return RangeRule(query, within, ranges, asked=False, keyed=True, paying=10)


def largest(times, slots, found):
    """The rows of the largest partition, without halos."""
    group_of, starts = found
    groups = np.array(group_of)[slots] if group_of else np.zeros(len(slots), np.int64)
    rows = []
    for group, own in enumerate(starts):
        places = np.searchsorted(np.array(own, np.int64), times[groups == group], side="right")
        rows += np.bincount(places, minlength=len(own) + 1).tolist()
    assert sum(rows) == len(times)
    return max(rows)


@pytest.mark.parametrize("within", [50, 3_000, 1_000_000])
@pytest.mark.parametrize("ranges", [2, 4, 8, 24])
@pytest.mark.parametrize("share", [0.4, 0.05, 0.95])
def test_a_key_with_many_rows_is_divided(share, ranges, within):
    rng = np.random.default_rng(1)
    times = np.sort(rng.integers(0, 100_000, 20_000))
    slots = np.where(rng.random(20_000) < share, 7, rng.integers(0, SLOTS, 20_000))
    found = rule(ranges, within).grouped(summary_of(times, slots))
    assert sum(len(starts) + 1 for starts in found[1]) <= ranges
    even = 20_000 / ranges
    if within < 1_000:
        assert not found[0], "halos are small, so time alone divides the rows"
        assert largest(times, slots, found) < 1.2 * even
    elif within == 3_000 or share * ranges < 2:
        assert largest(times, slots, found) < 1.8 * even
    else:
        # Every row of the key meets every earlier one: two ranges are what pays.
        assert largest(times, slots, found) <= 1.1 * max(even, share * 20_000 / 2)


@given(
    st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 9)), max_size=300),
    st.integers(1, 40),
    st.integers(0, 120),
)
def test_every_row_has_a_partition_and_no_more_are_made_than_there_may_be(rows, ranges, within):
    times = np.array([time for time, _ in rows], np.int64)
    slots = np.array([slot for _, slot in rows], np.int64)
    group_of, starts = rule(ranges, within).grouped(summary_of(times, slots))
    assert sum(len(own) + 1 for own in starts) <= ranges
    assert len(group_of) in (0, SLOTS)
    assert all(0 <= group < len(starts) for group in group_of)
    assert all(sorted(set(own)) == list(own) for own in starts)


def test_a_sample_stands_for_all_rows():
    times = np.arange(1_000)
    batch = pa.record_batch(
        {"side": pa.array(np.zeros(1_000), pa.int8()), "time": pa.array(times, pa.int64())}
    )
    whole = OrderSummary.of(splitjoin_order_summary(iter([batch])), 4.0)
    assert whole.rows == (4_000, 0)
    assert whole.quantiles(2) == (499,)
