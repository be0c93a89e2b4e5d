# SPDX-License-Identifier: Apache-2.0
"""Tables and queries for aggregates on a device, and how they are run."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import strategies as st
import pyarrow as pa

from host.operators.aggregate import WindowAggregation
from host.query.queries import AggregateQuery

__all__ = [
    "BEYOND",
    "SCHEMA",
    "agree",
    "agree_going_on",
    "cases",
    "cases_beyond",
    "query",
]

SCHEMA = pa.schema(
    [
        ("time", pa.int64()),
        ("item", pa.int8()),
        ("name", pa.string()),
        ("price", pa.int16()),
        ("weight", pa.float64()),
    ]
)
AGGREGATES = {
    "n": "count", "prices": "count:price", "total": "sum:price", "low": "min:price",
    "high": "max:price", "mean": "mean:price",
}  # fmt: skip


def query(window=6, advance=2, keys=("item",), **changes):
    given = {"time": "time", "window": window, "advance": advance, "on": keys}
    return AggregateQuery(**{**given, "aggregates": AGGREGATES, **changes})


@st.composite
def cases(draw, *, least=0, most=40):
    """Return a query, rows in pieces, whether they are sorted, and a watermark for each piece."""
    row = st.fixed_dictionaries(
        {
            "time": st.integers(-20, 60),
            "item": st.none() | st.integers(0, 2),
            "name": st.sampled_from([None, "a", ""]),
            "price": st.none() | st.integers(-128, 127),
        }
    )
    rows = draw(st.lists(row, min_size=least, max_size=most))
    how = draw(st.sampled_from(["in order", "at the end", "until"]))
    if how == "in order":
        rows.sort(key=lambda row: row["time"])
    pane, length = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    # The accelerator cannot open a pane again for a late row, some of whose windows have ended.
    advance = length if how == "until" else draw(st.integers(1, length))
    names = draw(st.lists(st.sampled_from(list(AGGREGATES)), min_size=1, unique=True))
    asked = query(
        pane * length,
        pane * advance,
        draw(st.sampled_from([(), ("item",), ("name",), ("item", "name")])),
        aggregates={name: AGGREGATES[name] for name in names},
    )
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    pieces = [
        pa.RecordBatch.from_pylist(rows[a:b], SCHEMA) for a, b in pairwise([0, *cuts, len(rows)])
    ]
    watermarks = [draw(st.integers(-30, 70)) for _ in pieces] if how == "until" else None
    return asked, pieces, how, watermarks


#: What rows can have that the small accelerator refuses, by the column.
BEYOND = {
    "time": lambda row, _: row["time"] + (1 << 20),
    "name": lambda row, at: f"{row['name']}{at}",
    "price": lambda row, _: None if row["price"] is None else row["price"] * 100,
}


@st.composite
def cases_beyond(draw, column):
    """Cases as of :func:`cases`, of which most have rows that the small accelerator refuses."""
    asked, pieces, how, watermarks = draw(cases(least=35, most=50))
    if column == "name":
        asked = replace(asked, on=("name",))
    begin = draw(st.integers(0, 20))
    changed, at = [], 0
    for piece in pieces:
        rows = piece.to_pylist()
        for row in rows:
            if at >= begin:
                row[column] = BEYOND[column](row, at)
            at += 1
        changed.append(pa.RecordBatch.from_pylist(rows, SCHEMA))
    return asked, changed, how, watermarks


def agree_going_on(device, case, tell):
    """Assert that a device, and the host from where it refuses rows, give the host's batches."""
    asked, *given = case
    expected = WindowAggregation(SCHEMA, asked)
    with WindowAggregation(SCHEMA, asked, device, goes_on=True) as work:
        assert run(work, *given) == run(expected, *given)
    if work.refusal is not None:
        tell(work.refusal)
    assert (work.rows, work.results) == (expected.rows, expected.results)
    assert (work.late_rows, work.held) == (expected.late_rows, 0)


def run(work, pieces, how, watermarks):
    """Return the batches of results, one for each piece and one for the end."""
    step = {
        "in order": lambda at: work.rows_in_order(pieces[at]),
        "at the end": lambda at: work.more_rows(pieces[at]),
        "until": lambda at: work.rows_until(pieces[at], watermarks[at]),
    }[how]
    return [*map(step, range(len(pieces))), work.last_rows()]


def agree(device, case):
    """Assert that a device gives the batches of the host, and counts the same rows."""
    asked, *given = case
    expected = WindowAggregation(SCHEMA, asked)
    with WindowAggregation(SCHEMA, asked, device) as work:
        assert run(work, *given) == run(expected, *given)
    assert (work.rows, work.results) == (expected.rows, expected.results)
    assert (work.late_rows, work.held) == (expected.late_rows, 0)
