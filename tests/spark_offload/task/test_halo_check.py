# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import pytest

from host import FailureError
from spark_offload.partitioning.halos import HaloCounts
from spark_offload.task.rows import RangeRows
from tests.spark_offload.tagged_batches import in_batches, tagged_table

PAIRS = st.tuples(st.integers(0, 6), st.integers(0, 6))
CUTS = st.lists(st.integers(0, 24), max_size=4)


def rows_of(sent, own, rng):
    """Return as many halo rows and own rows of each side, the sides mixed."""
    rows = []
    for halo, counts in ((True, sent), (False, own)):
        sides = [0] * counts[0] + [1] * counts[1]
        rng.shuffle(sides)
        rows += [(side, len(rows) + n, n, 10 * len(rows) + n, halo) for n, side in enumerate(sides)]
    return rows


def counts_of(part, sent, needed, own):
    """Return counts that the other ranges do not share."""
    ranges = [tuple((9, 9) if at != part else mine for at in range(3)) for mine in (sent, own)]
    return HaloCounts(ranges[0], tuple((1, 1) if at != part else needed for at in range(3)), own)


def seen(check, batches):
    """Return what passes a check, up to its end."""
    passed = [row for batch in batches for row in check.see(batch).to_pylist()]
    check.finish()
    return passed


@given(st.integers(0, 2), PAIRS, PAIRS, PAIRS, CUTS, st.randoms(use_true_random=False))
def test_the_last_halo_rows_of_each_side_pass_as_many_as_are_needed(
    part, sent, needed, own, cuts, rng
):
    needed = tuple(map(min, sent, needed))
    rows = rows_of(sent, own, rng)
    table = tagged_table(rows, part=part)
    want, left_out = [], [0, 0]
    for row in table.to_pylist():
        side = row["side"]
        if row["halo"] and left_out[side] < sent[side] - needed[side]:
            left_out[side] += 1
        else:
            want.append(row)
    check = RangeRows(counts_of(part, sent, needed, own))
    assert seen(check, in_batches(table, cuts)) == want


@given(st.integers(0, 2), PAIRS, PAIRS, CUTS, st.sampled_from([0, 1]), st.booleans())
def test_halo_rows_that_were_not_counted_are_named(part, sent, own, cuts, side, more):
    found = list(sent)
    found[side] += 1 if more else -min(1, sent[side])
    if not sum(found) + sum(own) or tuple(found) == sent:
        return
    rows = [(of, 0, 0, 0, True) for of in (0, 1) for _ in range(found[of])]
    rows += [(of, 1, 0, 0, False) for of in (0, 1) for _ in range(own[of])]
    check = RangeRows(counts_of(part, sent, sent, own))
    name = ("left", "right")[side]
    words = (
        f"The {name} input changed while it was joined: range {part} of the order column has "
        f"{found[side]:,} rows in its halo, not {sent[side]:,} as counted"
    )
    with pytest.raises(FailureError, match=words):
        seen(check, in_batches(tagged_table(rows, part=part), cuts))


def test_a_wrong_halo_is_told_with_the_first_row_behind_it():
    check = RangeRows(counts_of(1, (2, 1), (2, 1), (1, 1)))
    halo = [(0, 0, 0, 0, True), (1, 0, 0, 0, True)]
    assert check.see(next(in_batches(tagged_table(halo, part=1), []))).num_rows == 2
    with pytest.raises(FailureError, match="has 1 rows in its halo, not 2"):
        check.see(next(in_batches(tagged_table([(1, 1, 0, 0, False)], part=1), [])))


@pytest.mark.parametrize("side", [0, 1])
def test_a_wrong_halo_is_told_at_the_end_if_no_row_stands_behind_it(side):
    sent = (2, 1) if side else (1, 2)
    check = RangeRows(counts_of(1, sent, sent, (0, 0)))
    (batch,) = in_batches(tagged_table([(0, 0, 0, 0, True), (1, 0, 0, 0, True)], part=1), [])
    assert check.see(batch).num_rows == 2
    with pytest.raises(FailureError, match="has 1 rows in its halo, not 2"):
        check.finish()


def test_a_range_without_rows_is_not_checked():
    check = RangeRows(counts_of(1, (2, 1), (2, 1), (1, 1)))
    assert seen(check, in_batches(tagged_table([], part=1), [0])) == []
