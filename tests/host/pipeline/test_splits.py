# SPDX-License-Identifier: Apache-2.0
"""A false `sorted_by` is found out as rows are read, in one part or across parts and threads."""

import gc
from itertools import pairwise
import weakref

from hypothesis import given
from hypothesis import strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from host.errors import FalseOrderError, UnknownColumnError
from host.pipeline import Pipeline
from host.pipeline.splits import in_declared_order

VALUES = st.lists(
    st.tuples(st.sampled_from([0, 1, 2, None]), st.sampled_from(["a", "b", None])), max_size=12
)


def table(rows):
    schema = pa.schema([("n", pa.int64()), ("text", pa.string())])
    return pa.Table.from_pylist([{"n": n, "text": text} for n, text in rows], schema)


def first_fall(rows):
    """Return the number of the first row that is less than the row before it, if there is one."""
    keys = [last_first(row) for row in rows]
    return next((at for at, (a, b) in enumerate(pairwise(keys), 1) if b < a), None)


def last_first(row):
    """Return a key that sorts rows with nulls last."""
    number, text = row
    return (number is None, number or 0, text is None, text or "")


@given(VALUES, st.booleans(), st.integers(1, 5), st.integers(1, 3))
def test_rows_pass_if_and_only_if_they_are_sorted_in_any_parts(rows, do_sort, size, threads):
    if do_sort:
        rows = sorted(rows, key=last_first)
    pipeline = Pipeline.of_table(table(rows), sorted_by=["n", "text"], split_rows=size)
    fall = first_fall(rows)
    if fall is None:
        assert pipeline.parallel(threads).collect().equals(table(rows))
        return
    with pytest.raises(FalseOrderError) as raised:
        pipeline.parallel(threads).collect()
    found = raised.value
    at = found.position + (0 if found.part is None else found.part * size)
    assert [found.previous, found.row] == table(rows).slice(at - 1, 2).to_pylist()
    if threads == 1:
        assert at == fall


@given(st.permutations(range(4)), st.permutations(range(4)))
def test_parts_are_compared_in_whatever_order_they_are_read(order, values):
    parts = [[table([(values[0], "a")])], [], [table([(values[1], "a"), (values[2], "a")])], []]
    parts.append([table([(values[3], "a")])])
    splits = [lambda part=part: [b for each in part for b in each.to_batches()] for part in parts]
    checked = in_declared_order(splits, ["n"], "rows")

    def read():
        for number in (*order, 4):
            list(checked[number]())

    if values == sorted(values):
        read()
        read()  # parts may be read again
    else:
        with pytest.raises(FalseOrderError, match=r"declared to be sorted by n, but row [01] of"):
            read()


def test_what_a_limit_does_not_read_is_not_compared():
    rows = table([(1, "a"), (2, "a"), (0, "a")])
    source = Pipeline.of_batches(lambda: rows.to_batches(1), rows.schema, sorted_by=["n"])
    assert source.limit(2).collect().num_rows == 2
    with pytest.raises(FalseOrderError, match="row 2 .* has n=0 after n=2"):
        source.limit(3).collect()


def test_a_vanished_sort_a_merge_and_distinct_find_a_false_order_out(tmp_path):
    rows = table([(1, "a"), (3, "a"), (2, "a")])
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=2)
    declared = [
        Pipeline.of_table(rows, sorted_by=["n"]),
        Pipeline.of_parquet(tmp_path / "rows.parquet", sorted_by=["n"]),
    ]
    for source in declared:
        for asked in (source.sorted("n"), source.merge(source, by=["n"]), source.distinct("n")):
            with pytest.raises(FalseOrderError, match="sort them first, or do not declare it"):
                asked.collect()


def test_a_column_that_is_not_there_is_left_to_those_who_look_it_up():
    source = Pipeline.of_table(table([(2, "a"), (1, "a")]), sorted_by=["m"])
    assert source.collect().num_rows == 2
    with pytest.raises(UnknownColumnError):
        source.sorted("m").collect()


def test_batches_pass_by_reference_and_are_not_kept():
    def rows():
        batch = table([(1, "a"), (2, "b")]).to_batches()[0]
        seen.append(weakref.ref(batch))
        yield batch

    seen = []
    [part] = in_declared_order([rows], ["n"], "rows")
    reader = part()
    assert next(reader) is seen[0]()
    assert next(reader, None) is None
    del reader
    gc.collect()
    assert seen[0]() is None
