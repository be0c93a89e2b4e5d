# SPDX-License-Identifier: Apache-2.0
from datetime import date, datetime

from hypothesis import given
from hypothesis import strategies as st
import pyarrow as pa
import pytest

from spark_offload.partitioning.tagged import LEAST
from spark_offload.task.handover import WindowSize, count_windows, order_numbers
from tests.spark_offload.arrow_frame import ArrowFrame
from tests.spark_offload.tagged_batches import in_batches, tagged_table

GREATEST = -LEAST - 1


def held(rows, width):
    """Return the most rows of one side within ``width`` before a row, that one among them."""
    most = 0
    for side in (0, 1):
        times = [row[1] for row in rows if row[0] == side and row[1] is not None]
        for place, time in enumerate(times):
            most = max(most, sum(time - then <= width for then in times[: place + 1]))
    return most


ROWS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 20)), max_size=20)
FIRST = st.sampled_from([0, -7, LEAST, GREATEST - 20])
WIDTH = st.sampled_from([0, 1, 4, 30])
CUTS = st.lists(st.integers(0, 20), max_size=4)


def sorted_rows(pairs, first):
    return [(side, first + time, 0, 0, False) for side, time in sorted(pairs, key=lambda p: p[1])]


@given(ROWS, FIRST, WIDTH, CUTS)
def test_the_most_rows_of_a_side_are_counted_whatever_the_batches(pairs, first, width, cuts):
    rows = sorted_rows(pairs, first)
    size = WindowSize(width)
    for batch in in_batches(tagged_table(rows), cuts):
        size.see(batch)
    assert size.largest == held(rows, width)


@given(st.lists(ROWS, max_size=3), WIDTH, CUTS)
def test_partitions_are_counted_each_by_itself_without_rows_that_have_no_time(parts, width, cuts):
    sides = [
        [(0, None, 0, 0, False), (1, None, 0, 0, False), *sorted_rows(pairs, 5)] for pairs in parts
    ]
    frame = ArrowFrame([list(in_batches(tagged_table(rows), cuts)) for rows in sides])
    assert count_windows(frame, width) == max((held(rows, width) for rows in sides), default=0)


@pytest.mark.parametrize(
    ("kind", "values", "numbers"),
    [
        (pa.int64(), [-3, 4], [-3, 4]),
        (pa.date32(), [date(1970, 1, 2), date(1969, 12, 30)], [1, -2]),
        (pa.timestamp("us"), [datetime(1970, 1, 1, 0, 0, 1)], [1_000_000]),
        (pa.bool_(), [False, True], [0, 1]),
    ],
)
def test_times_are_numbers_as_far_apart_as_they_are(kind, values, numbers):
    found = order_numbers(pa.record_batch({"order": pa.array(values, kind)}))
    assert found.dtype == "int64"
    assert found.tolist() == numbers
