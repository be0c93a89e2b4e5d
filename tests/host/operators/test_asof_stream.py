# SPDX-License-Identifier: Apache-2.0
"""Rows that come in pieces are joined like rows that are there at once."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
import pyarrow as pa
import pytest

from host import UsageError
from host.operators.asof import AsofJoin, AsofStream
from host.query.queries import AsofQuery
from host.reference.types import Direction

LEFT = pa.schema([("t", pa.int64()), ("k", pa.string()), ("x", pa.int64())])
RIGHT = pa.schema([("u", pa.int64()), ("l", pa.string()), ("y", pa.int64())])
KEYS = st.none() | st.sampled_from("ab")
#: Side, time, key, and whether a piece ends behind the row.
ROW = st.tuples(st.integers(0, 1), st.integers(-9, 9), KEYS, st.integers(0, 3).map(bool))
QUERY = st.builds(
    lambda keyed, direction, tolerance, exact, how: AsofQuery(
        time=("t", "u"),
        on=[("k", "l")] if keyed else [],
        direction=direction,
        within=tolerance,
        allow_exact_matches=exact,
        how=how,
    ),
    st.booleans(),
    st.sampled_from(Direction),
    st.none() | st.integers(0, 6),
    st.booleans(),
    st.sampled_from(["left", "inner"]),
)


def tables(rows):
    """Return the left and the right rows; ``x`` and ``y`` number them."""
    sides = []
    for side, schema in enumerate((LEFT, RIGHT)):
        own = [(time, key, number) for number, (of, time, key, _) in enumerate(rows) if of == side]
        columns = zip(*own, strict=True) if own else ((), (), ())
        sides.append(
            pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)
        )
    return sides


def pieces(rows):
    """Yield the rows between ends of pieces; the last piece may be empty."""
    begin = 0
    for place, row in enumerate(rows):
        if not row[3]:
            yield begin, place + 1
            begin = place + 1
    yield begin, len(rows)


def of_piece(rows, begin, end):
    left, right = tables(rows)
    return tuple(
        table.filter((numbers >= begin) & (numbers < end))
        for table, numbers in ((left, left["x"].to_numpy()), (right, right["y"].to_numpy()))
    )


@given(st.lists(ROW, max_size=20).map(lambda rows: sorted(rows, key=lambda row: row[1])), QUERY)
def test_rows_in_order_give_the_same_rows_in_the_same_order(rows, query):
    stream = AsofStream(LEFT, RIGHT, query)
    found = []
    for begin, end in pieces(rows):
        found += stream.rows_in_order(*of_piece(rows, begin, end)).to_pylist()
    found += stream.last_rows(LEFT.empty_table(), RIGHT.empty_table()).to_pylist()
    assert found == AsofJoin(*tables(rows), query).table().to_pylist()
    assert (stream.waiting.num_rows, stream.kept.num_rows) == (0, 0)


@given(st.lists(ROW, max_size=20), QUERY)
def test_rows_in_any_order_leave_when_time_has_passed(rows, query):
    stream = AsofStream(LEFT, RIGHT, query, ordered=False)
    found, cuts = [], list(pieces(rows))
    for begin, end in cuts:
        rest = [time for _, time, _, _ in rows[end:]]
        batch = stream.rows_until(*of_piece(rows, begin, end), min(rest, default=20))
        found += batch.to_pylist()
    found += stream.last_rows(LEFT.empty_table(), RIGHT.empty_table()).to_pylist()
    expected = AsofJoin(*tables(rows), query).table().to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, expected))


@pytest.mark.parametrize(
    ("direction", "tolerance", "waiting", "kept"),
    [
        ("backward", None, 1, 2),  # the newest row of each key
        ("backward", 1, 1, 1),  # one of them is two units of time old
        ("forward", 5, 6, 5),
        ("nearest", 5, 6, 7),
    ],
)
def test_only_what_rows_to_come_can_need_is_kept(direction, tolerance, waiting, kept):
    rows = [(1, time, "ab"[time % 2], True) for time in range(100)]
    rows += [(0, time, "c", True) for time in range(101)]
    rows.sort(key=lambda row: row[1])
    query = AsofQuery(time=("t", "u"), on=[("k", "l")], direction=direction, within=tolerance)
    stream = AsofStream(LEFT, RIGHT, query)
    stream.rows_in_order(*tables(rows))
    assert (stream.waiting.num_rows, stream.kept.num_rows) == (waiting, kept)


def test_what_does_not_suit_is_refused_before_any_row():
    query = AsofQuery(time=("t", "u"), within=timedelta(seconds=5))
    with pytest.raises(UsageError, match="The distance 5s is a duration"):
        AsofStream(LEFT, RIGHT, query)
