# SPDX-License-Identifier: Apache-2.0
"""Pieces of a partition, against the matches of all of its rows."""

from bisect import bisect_right

from hypothesis import given, settings
from hypothesis import strategies as st
import pyarrow as pa
import pytest

from host.operators.verification import reference_pairs
from host.query.queries import Query
from host.reference.window import CountWindow, TimeWindow
from host.session.intake import TaggedLayout
from spark_offload.partitioning.tagged import ALONE_COLUMN
from spark_offload.task.join import MatchPieces
from tests.spark_offload.tagged_batches import in_batches, tagged_table
from tests.windows import over

#: Columns of either side: the time, and a number of the row.
SCHEMA = pa.schema([("t", pa.int64()), ("x", pa.int32())])
CUTS = st.lists(st.integers(0, 30), min_size=2, max_size=8)
WINDOWS = st.integers(0, 9).map(TimeWindow) | st.integers(1, 6).map(CountWindow)


def arrivals():
    """Sides and times of rows in the order of arrival, below zero too."""
    rows = st.tuples(st.integers(-5, 25), st.integers(0, 1))
    return (st.lists(rows, min_size=15, max_size=40) | st.just([])).map(
        lambda rows: [(side, time, at) for at, (time, side) in enumerate(sorted(rows))]
    )


def matched(left, right, window):
    """The numbers of the right rows that each left row matches, by the reference join."""
    found = [[] for _ in range(left.num_rows)]
    query = Query(time="t", **over(window))
    numbers = right["x"].to_pylist()
    for own, other in zip(*reference_pairs(left, right, query), strict=True):
        found[own].append(numbers[other])
    return [(x, sorted(row)) for x, row in zip(left["x"].to_pylist(), found, strict=True)]


def by_pieces(rows, window, cuts, *, alone=None, least=4, width=...):
    """What all pieces answer, in their order."""
    table = tagged_table([(side, time, at, at, False) for side, time, at in rows])
    if alone is not None:
        table = table.append_column(ALONE_COLUMN, pa.array(alone, pa.bool_()))
    layout = TaggedLayout(
        SCHEMA, SCHEMA, 3, shared=True, alone=None if alone is None else ALONE_COLUMN
    )
    query = Query(time="t", **over(window))
    width = getattr(window, "lifespan", None) if width is ... else width
    answers, sizes = [], []
    for piece in MatchPieces(layout, query, width, rows=least).of(in_batches(table, cuts)):
        found = matched(piece.left, piece.right, window)
        answers += [row for row, own in zip(found, piece.answered, strict=True) if own]
        sizes.append((piece.left.num_rows, piece.right.num_rows))
    return answers, sizes


def all_matches(rows, window):
    sides = [
        pa.Table.from_pylist([{"t": time, "x": at} for side, time, at in rows if side == own],
                             SCHEMA)
        for own in (0, 1)
    ]  # fmt: skip
    return matched(*sides, window)


@settings(max_examples=60)
@given(rows=arrivals(), window=WINDOWS, cuts=CUTS)
def test_every_left_row_is_answered_once_with_all_its_matches(rows, window, cuts):
    assert by_pieces(rows, window, cuts)[0] == all_matches(rows, window)


@settings(max_examples=60)
@given(rows=arrivals(), lifespan=st.integers(0, 9), cuts=CUTS)
def test_times_that_are_no_numbers_make_one_piece(rows, lifespan, cuts):
    window = TimeWindow(lifespan)
    answers, sizes = by_pieces(rows, window, cuts, width=None)
    assert answers == all_matches(rows, window)
    assert sum(left > 0 for left, _ in sizes) <= 1


@settings(max_examples=60)
@given(
    rows=arrivals(),
    lifespan=st.integers(0, 9),
    starts=st.lists(st.integers(-5, 25), min_size=1, max_size=3, unique=True).map(sorted),
    cuts=CUTS,
)
def test_ranges_of_time_answer_for_the_rows_that_leave_in_them(rows, lifespan, starts, cuts):
    window, answers = TimeWindow(lifespan), []
    for part in range(len(starts) + 1):
        begin = starts[part - 1] if part else -100
        end = starts[part] if part < len(starts) else 100
        sent = [
            row for row in rows if begin - lifespan * (1 + (row[0] == 1)) <= row[1] < end
        ]  # as spark_offload.partitioning.halos has it
        alone = [bisect_right(starts, time + lifespan) == part for _, time, _ in sent]
        answers += by_pieces(sent, window, cuts, alone=alone)[0]
    assert sorted(answers) == sorted(all_matches(rows, window))


@pytest.mark.parametrize("window", [TimeWindow(10), CountWindow(10)])
def test_what_is_sent_again_is_no_more_than_the_window(window):
    rows = [(at % 2, at, at) for at in range(2000)]
    answers, sizes = by_pieces(rows, window, range(0, 2000, 50), least=200)
    assert len(answers) == 1000
    assert len(sizes) > 8
    assert max(map(max, sizes)) <= 125
    assert sum(map(sum, sizes)) <= 2000 + len(sizes) * 45
