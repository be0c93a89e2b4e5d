# SPDX-License-Identifier: Apache-2.0
"""Halo rows are met by later rows, and complete no pair themselves."""

import pyarrow as pa
import pytest

from host import CountWindow, TimeWindow, open_device
from host.driver import TaggedJoin, TaggedLayout
from host.errors import UsageError
from host.query import JoinQuery

SIDE = pa.schema([("t", pa.int64())])


def batches(halos, *, size=3, count=40):
    """Rows of both sides in turn; the first ``halos`` are halo rows."""
    rows = [(number % 2, number, number < halos) for number in range(count)]
    for begin in range(0, count, size):
        side, time, halo = zip(*rows[begin : begin + size], strict=True)
        columns = [
            pa.array(side, pa.int8()),
            pa.array([t if s == 0 else None for s, t in zip(side, time, strict=True)], pa.int64()),
            pa.array([t if s == 1 else None for s, t in zip(side, time, strict=True)], pa.int64()),
            pa.array(halo),
        ]
        yield pa.RecordBatch.from_arrays(columns, names=["side", "l", "r", "halo"])


def joined(rows, window):
    layout = TaggedLayout(SIDE, SIDE, 1, halo="halo")
    query = JoinQuery(terms=(), order=("t", "t"), window=window, sorted=True)
    with open_device("software:") as device:
        join = TaggedJoin(rows, layout, query, device)
        answer = [tuple(row.values()) for batch in join.batches() for row in batch.to_pylist()]
        return answer, join.staged.halo_tuples


@pytest.mark.parametrize("window", [TimeWindow(7), CountWindow(4)])
@pytest.mark.parametrize("size", [1, 3, 40])
def test_pairs_whose_later_row_is_a_halo_row_are_left_out(window, size):
    everything, none = joined(batches(0, size=size), window)
    assert none == 0
    for halos in (1, 8, 39, 40):
        answer, tuples = joined(batches(halos, size=size), window)
        assert answer == [pair for pair in everything if max(pair) >= halos]
        assert tuples == halos


def test_a_halo_row_behind_others_is_an_error():
    rows = list(batches(2)) + list(batches(1))
    with pytest.raises(UsageError, match="Halo rows come before all others"):
        joined(rows, TimeWindow(7))
