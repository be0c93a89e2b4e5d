# SPDX-License-Identifier: Apache-2.0
from bisect import bisect_right

from hypothesis import given
from hypothesis import strategies as st
import pyarrow as pa
import pytest

from host import FailureError
from spark_offload.partitioning.halos import HaloCounts
from spark_offload.partitioning.tagged import ALONE_COLUMN
from spark_offload.task.rows import RangeRows
from tests.spark_offload.tagged_batches import in_batches, tagged_table

CUTS = st.lists(st.integers(0, 40), max_size=4)


def partitions(borders, halos, rng):
    """Return the counts, and the rows of each range: ``x`` is a row's number within its side.

    Parameters
    ----------
    borders : pair of list of int
        By side: the number of the first row of each range but the first, then that of all rows.
    halos : list of int
        Rows of either side in the halo of each range, at least, as far as there are so many.
    """
    begins = [[0, *of_side[:-1]] for of_side in borders]
    needed = [
        tuple(min(begins[side][part], halo) for side in (0, 1)) for part, halo in enumerate(halos)
    ]
    own = [
        tuple(borders[side][part] - begins[side][part] for side in (0, 1))
        for part in range(len(halos))
    ]
    ranges = []
    for part, halo in enumerate(needed):
        rows = []
        for is_halo in (True, False):
            some = [
                (side, 0, 0, number, is_halo)
                for side in (0, 1)
                for number in (
                    range(begins[side][part] - halo[side], begins[side][part])
                    if is_halo
                    else range(begins[side][part], borders[side][part])
                )
            ]
            # Sides mixed, the rows of either one in their order.
            order = sorted(range(len(some)), key=lambda _: rng.random())
            of_side = [iter([row for row in some if row[0] == side]) for side in (0, 1)]
            rows += [next(of_side[some[at][0]]) for at in order]
        ranges.append(tagged_table(rows, part=part))
    return HaloCounts(tuple(needed), tuple(needed), tuple(own)), ranges


@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=4),
    st.integers(0, 4),
    CUTS,
    st.randoms(use_true_random=False),
)
def test_each_row_leaves_in_the_range_of_the_row_that_pushes_it_out(size, own, more, cuts, rng):
    borders = [
        [sum(counts[side] for counts in own[: at + 1]) for at in range(len(own))] for side in (0, 1)
    ]
    counts, ranges = partitions(borders, [size + more] * len(own), rng)
    told = []
    for part, table in enumerate(ranges):
        departing = RangeRows(counts, size)
        for batch in in_batches(table, cuts):
            flagged = departing.see(batch)
            assert flagged.drop_columns([ALONE_COLUMN]) == batch
            assert flagged.schema.field(ALONE_COLUMN).type == pa.bool_()
            told += [
                (row["side"], row["x"], part)
                for row in flagged.rename_columns({"c1": "x"}).to_pylist()
                if row[ALONE_COLUMN]
            ]
        departing.finish()
    last = len(own) - 1
    want = [
        (side, number, min(last, bisect_right(borders[side], number + size)))
        for side in (0, 1)
        for number in range(borders[side][-1])
    ]
    assert sorted(told) == want


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("more", [-1, 1])
def test_rows_that_were_not_counted_are_named(side, more):
    halo, own = (1, 2), (3, 3)
    counts = HaloCounts((halo,) * 2, (halo,) * 2, (own,) * 2)
    found = [3, 3]
    found[side] += more
    rows = [(of, 0, 0, 0, True) for of in (0, 1) for _ in range(halo[of])]
    rows += [(of, 1, 0, 0, False) for of in (0, 1) for _ in range(found[of])]
    departing = RangeRows(counts, 2)
    for batch in in_batches(tagged_table(rows, part=1), [3]):
        departing.see(batch)
    name = ("left", "right")[side]
    words = f"The {name} input changed .* range 1 of the order column has {3 + more} rows, not 3 "
    with pytest.raises(FailureError, match=words):
        departing.finish()


def test_a_range_without_rows_is_not_checked():
    departing = RangeRows(HaloCounts(((0, 0),), ((0, 0),), ((3, 3),)), 2)
    empty = next(in_batches(tagged_table([], part=0), []))
    assert departing.see(empty).schema.names[-1] == ALONE_COLUMN
    departing.finish()
