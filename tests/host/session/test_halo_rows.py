# SPDX-License-Identifier: Apache-2.0
"""Halo rows are met by later rows, and complete no pair themselves."""

import pyarrow as pa
import pytest

from host import CountWindow, TimeWindow, open_device
from host.errors import UsageError
from host.query.queries import Query
from host.session.intake import TaggedLayout
from host.session.join import Join
from tests.windows import over

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
    query = Query(time="t", **over(window), sorted=True)
    with open_device("software:") as device:
        join = Join.of_tagged(rows, layout, query, device)
        answer = [tuple(row.values()) for batch in join.batches() for row in batch.to_pylist()]
        return answer, join.measured.staged.halo_tuples


@pytest.mark.parametrize("window", [TimeWindow(7), CountWindow(4)])
@pytest.mark.parametrize("size", [1, 3, 40])
def test_pairs_whose_later_row_is_a_halo_row_are_left_out(window, size):
    everything, none = joined(batches(0, size=size), window)
    assert none == 0
    for halos in (1, 8, 39, 40):
        answer, tuples = joined(batches(halos, size=size), window)
        assert answer == [pair for pair in everything if max(pair) >= halos]
        assert tuples == halos


@pytest.mark.parametrize("how", ["left", "right", "full", "left_semi", "left_anti"])
@pytest.mark.parametrize("window", [TimeWindow(3), CountWindow(2)])
def test_pairs_of_halo_rows_count_as_matches_and_rows_come_alone_where_they_are_to(how, window):
    # Left rows match right rows that are 3 later; times 4 to 9 have left rows only.
    rows = [(number % 2 if not 4 <= number <= 9 else 0, number) for number in range(24)]
    query = Query(band=[("t", "t", -3, -3)], time="t", **over(window), sorted=True, how=how)

    def answer(halos, here):
        side, time = zip(*rows, strict=True)
        columns = {
            "side": pa.array(side, pa.int8()),
            "l": pa.array([t if s == 0 else None for s, t in rows], pa.int64()),
            "r": pa.array([t if s == 1 else None for s, t in rows], pa.int64()),
            "halo": pa.array([t < halos for t in time]),
            "alone": pa.array([t in here for t in time]),
        }
        layout = TaggedLayout(SIDE, SIDE, 1, halo="halo", alone="alone")
        with open_device("software:") as device:
            join = Join.of_tagged(pa.table(columns), layout, query, device)
            return [tuple(row.values()) for part in join.batches() for row in part.to_pylist()]

    everything = answer(0, range(24))
    assert any(None not in row for row in everything)
    assert len(everything) > 3
    for halos, here in [(0, [1, 2, 20]), (9, range(24)), (14, range(8, 20)), (24, range(24))]:
        wanted = []
        for result in everything:
            times = [time for time in result if time is not None]
            is_pair = len(times) == 2
            if max(times) >= halos if is_pair else times[0] in here:
                wanted.append(result)
        assert answer(halos, here) == wanted


def test_a_halo_row_behind_others_is_an_error():
    rows = list(batches(2)) + list(batches(1))
    with pytest.raises(UsageError, match="Halo rows come before all others"):
        joined(rows, TimeWindow(7))
