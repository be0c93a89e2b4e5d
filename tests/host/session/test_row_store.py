# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host.engine.equal_keys import merge_places
from host.session.intake import settled
from host.session.rows import RowStore, SharedRows, TableRows


def batch_of(begin, end):
    rows = range(begin, end)
    return pa.record_batch(
        {"n": pa.array(rows, pa.int64()), "text": pa.array([f"row {row}" for row in rows])}
    )


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=12),
    st.data(),
)
def test_rows_are_found_by_their_numbers_until_they_are_forgotten(sizes, data):
    store, count, least = RowStore(), 0, 0
    for size in sizes:
        store.append(batch_of(count, count + size))
        count += size
        if count > least:
            least = data.draw(st.integers(least, count - 1))
            store.forget(least)
            numbers = data.draw(st.lists(st.integers(least, count - 1), min_size=1, max_size=30))
            columns = store.take(np.array(numbers))
            assert columns[0].to_pylist() == numbers
            assert columns[1].to_pylist() == [f"row {number}" for number in numbers]
    assert store.count == count


def test_a_few_rows_of_many_batches_do_not_cost_all_of_them():
    store = RowStore()
    for begin in range(0, 200_000, 20_000):
        store.append(pa.record_batch({"n": np.arange(begin, begin + 20_000)}))
    numbers = np.array([199_999, 0, 50_000, 20_000, 0])
    assert store.take(numbers)[0].to_pylist() == numbers.tolist()
    assert store.take(numbers, slice(0, 0)) == []


def test_small_batches_are_put_together_and_old_ones_are_let_go():
    store = RowStore()
    for row in range(5000):
        store.append(batch_of(row, row + 1))
        store.forget(row - 99)
    assert 100 <= store.kept < 1000
    assert store.batches < 15
    with pytest.raises(IndexError, match="Row 0 has been forgotten"):
        store.take(np.array([0]))
    store.clear()
    assert store.kept == store.count == 0


def test_two_sides_of_one_store_forget_what_neither_needs():
    store = RowStore()
    left, right = SharedRows.pair(store, slice(0, 1), slice(1, 2))
    for begin in range(0, 100_000, 20_000):
        batch = pa.record_batch(
            {"l": np.arange(begin, begin + 20_000), "r": -np.arange(begin, begin + 20_000)}
        )
        left.append(batch)
        right.append(batch)
    left.forget(90_000)
    assert right.take(np.array([1, 99_999]))[0].to_pylist() == [-1, -99_999]
    right.forget(45_000)
    assert store.kept == 60_000
    assert left.take(np.array([90_000]))[0].to_pylist() == [90_000]


def test_rows_of_a_table_are_taken_in_its_order_of_arrival():
    table = pa.table({"n": pa.chunked_array([[5, 6], [7]])})
    rows = TableRows(table, np.array([2, 0, 1]))
    rows.append(table.to_batches()[0])
    rows.forget(2)
    rows.clear()
    assert rows.take(np.array([0, 1, 1]))[0].to_pylist() == [7, 5, 5]
    assert rows.original(np.array([0])).tolist() == [2]


TIMES = st.lists(st.integers(0, 12), max_size=30)


@given(TIMES, TIMES)
def test_places_are_those_of_a_stable_sort(left, right):
    left, right = (np.array(sorted(times), np.uint64) for times in (left, right))
    order = np.argsort(np.concatenate([left, right]), kind="stable")
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    mine, theirs = merge_places(left, right)
    assert mine.tolist() == places[: len(left)].tolist()
    assert theirs.tolist() == places[len(left) :].tolist()


@given(TIMES, TIMES)
def test_what_is_settled_no_later_row_comes_before(left, right):
    left, right = (np.array(sorted([*times, 3]), np.uint64) for times in (left, right))
    mine, theirs = settled(left, right)
    assert mine == len(left) or theirs == len(right)
    # A later left row may tie with the last one, and stands before right rows of that time.
    assert all(right[:theirs] < left[-1])
    assert all(left[:mine] <= right[-1])
