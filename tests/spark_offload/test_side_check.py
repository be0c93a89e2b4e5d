# SPDX-License-Identifier: Apache-2.0
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from host.errors import DisorderError, NullOrderError
from spark_offload.side_check import SideCheck
from tests.spark_offload.tagged_batches import in_batches, tagged_table

LARGE = 1 << 33
"""Rows of one Spark partition are numbered from here on, those of the next one from twice that."""


def check(table, cuts, *, side, is_sorted):
    """See the rows of one side of a table."""
    name = ("left", "right")[side]
    checks = SideCheck(name, "t", is_sorted, ("t", "x"), 3)
    for batch in in_batches(table, cuts):
        checks.see(batch, pc.equal(batch.column("side"), pa.scalar(side, pa.int8())))


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 5), st.booleans()), max_size=12),
    st.lists(st.integers(0, 12), max_size=3),
    st.integers(0, 1),
    st.booleans(),
)
def test_the_first_row_that_goes_back_in_time_is_named(rows, cuts, side, is_sorted):
    numbered, before = [], [0, 0]
    for of, time, in_second in rows:
        numbered.append((of, time, LARGE * in_second + before[of], 7, False))
        before[of] += 1
    numbered.sort(key=lambda row: (row[1], row[0], row[2]))
    own = [row for row in numbered if row[0] == side]
    back = next(((early, late) for early, late in pairwise(own) if late[2] < early[2]), None)
    table = tagged_table(numbered)
    if not is_sorted or back is None:
        check(table, cuts, side=side, is_sorted=is_sorted)
        return
    (_, time, row, *_), (_, later, *_) = back
    with pytest.raises(DisorderError) as raised:
        check(table, cuts, side=side, is_sorted=True)
    error = raised.value
    assert error.where == ("left.t", "right.t")[side]
    assert (error.position, error.value, error.previous) == (row % LARGE, time, later)
    of_partition = f"of the input's partition {row // LARGE} "
    assert (of_partition in str(error)) == (row >= LARGE)


@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize("side", [0, 1])
def test_a_row_without_a_time_is_shown(side, is_sorted):
    rows = [(1 - side, 3, 0, 1, False), (side, None, 9, 5, False), (side, None, 10, 6, False)]
    table = tagged_table(rows)
    with pytest.raises(NullOrderError) as raised:
        check(table, [], side=side, is_sorted=is_sorted)
    assert raised.value.column == ("left.t", "right.t")[side]
    assert "the row with t=null, x=5;" in str(raised.value)
    check(table, [], side=1 - side, is_sorted=is_sorted)  # the other side has all its times
