# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import pyarrow as pa
import pytest

from spark_offload.task.rows import MOST_BYTES, gathered

SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string())])


def batches_of(lengths, text="t"):
    """Yield batches whose rows are numbered through."""
    first = 0
    for length in lengths:
        numbers = range(first, first + length)
        yield pa.record_batch([list(numbers), [text] * length], schema=SCHEMA)
        first += length


@given(st.lists(st.integers(0, 12)), st.integers(1, 40))
def test_the_rows_stay_the_same_in_larger_batches(lengths, rows):
    result = list(gathered(batches_of(lengths), rows))
    wanted = pa.Table.from_batches(batches_of(lengths), SCHEMA)
    assert pa.Table.from_batches(result, SCHEMA) == wanted
    passed = 0
    for batch in result[:-1]:
        assert batch.num_rows >= min(rows, passed)
        passed += batch.num_rows
    assert all(batch.num_rows < rows + 12 for batch in result)


def test_batches_grow_with_the_rows_that_have_passed():
    result = gathered(batches_of([10] * 12), 40)
    assert [batch.num_rows for batch in result] == [10, 10, 20, 40, 40]


def test_the_first_batch_does_not_wait_for_the_second():
    def once():
        yield next(batches_of([10]))
        pytest.fail("The second batch was asked for.")

    assert next(gathered(once(), 40)).num_rows == 10


def test_wide_rows_are_not_gathered():
    text = "x" * (MOST_BYTES // 4)
    result = gathered(batches_of([1, 1, 1, 4, 1], text), 1000)
    assert [batch.num_rows for batch in result] == [1, 1, 5, 1]
