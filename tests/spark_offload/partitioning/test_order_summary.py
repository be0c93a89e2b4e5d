# SPDX-License-Identifier: Apache-2.0
"""Quantiles of all rows, by few times of each batch, against the sorted rows."""

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa

from spark_offload.partitioning.ranges import OrderSummary, order_profile, splitjoin_order_summary

WIDE = st.integers(-(1 << 63), (1 << 63) - 1)
TIME = st.none() | st.integers(-9, 9) | WIDE
ROWS = st.lists(st.tuples(st.sampled_from([0, 1]), TIME), max_size=12)


def batch_of(rows):
    sides, times = zip(*rows, strict=True) if rows else ((), ())
    return pa.record_batch(
        {"side": pa.array(sides, pa.int8()), "time": pa.array(times, pa.int64())}
    )


def summary_of(batches):
    return OrderSummary.of(splitjoin_order_summary(iter(batches)))


@given(st.lists(ROWS, max_size=5), st.integers(2, 40))
def test_of_few_rows_every_quantile_is_exact(batches, shares):
    summary = summary_of([batch_of(rows) for rows in batches])
    known = sorted(time for rows in batches for _, time in rows if time is not None)
    sides = [side for rows in batches for side, time in rows if time is not None]
    assert summary.rows == (sides.count(0), sides.count(1))
    if not known:
        assert summary.quantiles(shares) == (0,) * (shares - 1)
        return
    assert (summary.least, summary.greatest) == (known[0], known[-1])
    ends = [-(-len(known) * place // shares) - 1 for place in range(1, shares)]
    assert summary.quantiles(shares) == tuple(known[end] for end in ends)


def test_of_many_rows_quantiles_are_near():
    """Wherever the batches lie: one after another, each over all times, and of unequal sizes."""
    rng = np.random.default_rng(5)
    times = np.concatenate(
        [
            np.arange(20_000),
            rng.normal(10_000, 50, 9_000).astype(np.int64),
            rng.integers(0, 30_000, 7),
        ]
    )
    batches = [
        pa.record_batch({"side": pa.array(np.zeros(len(part), np.int8)), "time": pa.array(part)})
        for part in np.split(times, [5_000, 20_000, 24_000, 29_000])
    ]
    profile = order_profile(summary_of(batches), 7)
    shares = len(profile.quantiles) + 1
    assert shares % 7 == 0
    found = np.searchsorted(np.sort(times), profile.quantiles, "right") / len(times)
    assert np.abs(found - np.arange(1, shares) / shares).max() < 0.005
