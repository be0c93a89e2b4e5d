# SPDX-License-Identifier: Apache-2.0
"""Rows without a partner are left out, and no row that has one."""

from hypothesis import example, given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa

from host.query.quantities import Duration
from host.query.queries import Query, Term
from spark_offload.stream.passes import Reduction

SCHEMAS = (
    pa.schema(
        [("k", pa.int32()), ("x", pa.int64()), ("t", pa.timestamp("ms")), ("s", pa.string())]
    ),
    pa.schema(
        [("k", pa.int64()), ("x", pa.int32()), ("t", pa.timestamp("us")), ("s", pa.string())]
    ),
)
BANDS = [("x", -7, 3), ("x", 0, 0), ("x", 5, 2), ("x", None, 2), ("k", 0, 0), ("k", -1, 1)]
TIMES = ("t", Duration(-3_000_000), Duration(2_001_000))
FAR = [(1 << 31) - 1, -(1 << 31), 0]


def query(terms):
    return Query(
        band=[Term(name, name, low, high) for name, low, high in terms],
        time="t",
        rows=9,
    )


@st.composite
def tables(draw):
    rows = st.tuples(
        st.none() | st.integers(0, 3),
        st.none() | st.integers(-30, 30) | st.sampled_from(FAR),
        st.integers(-9, 9),
        st.sampled_from("ab"),
    )
    found = []
    for side, schema in enumerate(SCHEMAS):
        drawn = draw(st.lists(rows, max_size=12))
        k, x, t, s = zip(*drawn, strict=True) if drawn else ((), (), (), ())
        times = pa.array([time * (1, 1_000)[side] + side for time in t], pa.int64())
        arrays = [
            pa.array(k, schema[0].type),
            pa.array(x, schema[1].type),
            times,
            pa.array(s, "string"),
        ]
        arrays[2] = times.cast(schema[2].type)
        found.append(pa.Table.from_arrays(arrays, schema=schema))
    return found


def may_match(reduction, rows, side, others):
    """Return which rows can have a partner among others; None if nothing is known."""
    reached, cells = reduction.reached(others, 1 - side), reduction.cells(rows, side)
    return None if reached is None or cells is None else reached.among(cells)


def holds(terms, left, right):
    for name, low, high in terms:
        if left[name] is None or right[name] is None:
            return False
        if name == "s":
            if left[name] != right[name]:
                return False
            continue
        difference = left[name] - right[name]
        if isinstance(low, Duration):
            difference = Duration(round(difference.total_seconds() * 1_000_000) * 1_000)
        if (low is not None and difference < low) or (high is not None and difference > high):
            return False
    return True


@settings(deadline=None, max_examples=80)
@given(
    tables(),
    st.lists(st.sampled_from([*BANDS, TIMES, ("s", 0, 0)]), min_size=1, max_size=4),
)
@example([SCHEMAS[0].empty_table(), SCHEMAS[1].empty_table()], [BANDS[0]])
def test_no_row_with_a_partner_is_left_out(sides, terms):
    reduction = Reduction(query(terms), *SCHEMAS)
    rows = [table.to_pylist() for table in sides]
    for side in (0, 1):
        kept = may_match(reduction, sides[side], side, sides[1 - side])
        if kept is None:
            continue
        for own, flag in zip(rows[side], kept.tolist(), strict=True):
            pairs = [(own, other) if side == 0 else (other, own) for other in rows[1 - side]]
            assert flag or not any(holds(terms, *pair) for pair in pairs)


def test_few_rows_are_kept_that_have_none():
    """Of two fields neither of which excludes a row by itself: their cells do together."""
    rng = np.random.default_rng(3)
    sides = [
        pa.table({"x": rng.integers(0, 10_000, count), "y": rng.integers(0, 10_000, count)})
        for count in (100_000, 2_000)
    ]
    both = Query(
        band=[("x", "x", -10, 10), ("y", "y", -10, 10)],
        time="x",
        rows=9,
    )
    kept = may_match(Reduction(both, sides[0].schema, sides[1].schema), sides[0], 0, sides[1])
    # Four cells of 21 x 21 for each of 2,000 rows, and those that share a bit with one.
    assert 2_000 < kept.sum() < 6_000


def test_what_cannot_be_cut_into_cells_is_left_to_the_device():
    far = pa.table({"x": pa.array([1 << 62, 5], pa.int64())})
    near = pa.table({"x": pa.array([5], pa.int64())})
    for term in (Term("x", "x", -1, 1), Term("x", "x", None, 1), Term("x", "x", -(1 << 62), 1)):
        asked = Query(band=[term], time="x", rows=9)
        assert may_match(Reduction(asked, far.schema, near.schema), far, 0, near) is None
    text = pa.table({"s": ["a"]})
    asked = Query(on="s", time="s", rows=9)
    assert may_match(Reduction(asked, text.schema, text.schema), text, 0, text) is None
