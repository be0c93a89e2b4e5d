# SPDX-License-Identifier: Apache-2.0
from itertools import pairwise
import random

from hypothesis import given
from hypothesis import strategies as st
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from host.errors import OrderError
from spark_offload.task.rows import SideCheck
from tests.spark_offload.tagged_batches import in_batches, tagged_table

LARGE = 1 << 33
"""Rows of one Spark partition are numbered from here on, those of the next one from twice that."""


def check(table, cuts, *, side, is_sorted, per_partition=False):
    """See the rows of one side of a table."""
    name = ("left", "right")[side]
    checks = SideCheck(name, "t", is_sorted, ("t", "x"), 3, per_partition=per_partition)
    for batch in in_batches(table, cuts):
        checks.see(batch, pc.equal(batch.column("side"), pa.scalar(side, pa.int8())))


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("steps", [3, 9, 30])
def test_the_first_row_that_goes_back_in_time_is_named(side, steps, is_sorted):
    for seed in range(12):
        rng = random.Random(seed)
        # Times rise, but for a few; the rows of two Spark partitions follow one another.
        numbered, before = [], [0, 0]
        for at in range(20):
            of, time = rng.randrange(2), at + rng.randrange(-2, steps) // 2
            numbered.append((of, time, LARGE * (at >= 14) + before[of], 7, False))
            before[of] += 1
        numbered.sort(key=lambda row: (row[1], row[0], row[2]))
        own = [row for row in numbered if row[0] == side]
        back = next(((early, late) for early, late in pairwise(own) if late[2] < early[2]), None)
        table, cuts = tagged_table(numbered), [rng.randrange(20) for _ in range(seed % 4)]
        if not is_sorted or back is None:
            check(table, cuts, side=side, is_sorted=is_sorted)
            continue
        (_, time, row, *_), (_, later, *_) = back
        with pytest.raises(OrderError) as raised:
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
    with pytest.raises(OrderError) as raised:
        check(table, [], side=side, is_sorted=is_sorted)
    assert raised.value.where == ("left.t", "right.t")[side]
    assert "the row with t=null, x=5;" in str(raised.value)
    check(table, [], side=1 - side, is_sorted=is_sorted)  # the other side has all its times


@given(st.data())
def test_partitions_sorted_by_themselves_are_sources_of_their_own(data):
    sources = data.draw(st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=4))
    rows = sorted(
        (time, LARGE * source + at)
        for source, times in enumerate(sources)
        for at, time in enumerate(times)
    )
    table = tagged_table([(0, time, number, 7, False) for time, number in rows])
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=3))
    backwards = {
        (source, late)
        for source, times in enumerate(sources)
        for late in range(len(times))
        if any(before > times[late] for before in times[:late])
    }
    if not backwards:
        check(table, cuts, side=0, is_sorted=True, per_partition=True)
        return
    with pytest.raises(OrderError) as raised:
        check(table, cuts, side=0, is_sorted=True, per_partition=True)
    error = raised.value
    assert (error.part, error.position) in backwards
    times = sources[error.part]
    assert error.value == times[error.position] < error.previous
    assert error.previous in times[: error.position]
    assert f"of the input's partition {error.part} " in str(error)
