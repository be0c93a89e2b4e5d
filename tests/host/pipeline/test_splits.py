# SPDX-License-Identifier: Apache-2.0
"""False `sorted_by` and `distinct_by` are found out as rows are read, in any parts and threads."""

from datetime import datetime
from decimal import Decimal
import gc
from itertools import pairwise
import weakref

from hypothesis import given
from hypothesis import strategies as st
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from host.errors import OrderError, UsageError
from host.pipeline import Pipeline
from host.pipeline.source import distinct_as_declared, in_declared_order

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
    with pytest.raises(OrderError) as raised:
        pipeline.parallel(threads).collect()
    found = raised.value
    at = found.position + (0 if found.part is None else found.part * size)
    assert [found.previous, found.value] == table(rows).slice(at - 1, 2).to_pylist()
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
        with pytest.raises(OrderError, match=r"declared to be sorted by n, but row [01] of"):
            read()


def test_what_a_limit_does_not_read_is_not_compared():
    rows = table([(1, "a"), (2, "a"), (0, "a")])
    source = Pipeline.of_batches(lambda: rows.to_batches(1), rows.schema, sorted_by=["n"])
    assert source.limit(2).collect().num_rows == 2
    with pytest.raises(OrderError, match="row 2 .* has n=0 after n=2"):
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
            with pytest.raises(OrderError, match="sort them first, or do not declare it"):
                asked.collect()


@given(
    VALUES, st.sampled_from([["n"], ["text"], ["n", "text"]]), st.integers(1, 5), st.integers(1, 3)
)
def test_rows_pass_if_and_only_if_they_are_distinct_in_any_parts(rows, by, size, threads):
    source = table(rows)
    keys = [tuple(row.values()) for row in source.select(by).to_pylist()]
    pipeline = Pipeline.of_table(source, distinct_by=by, split_rows=size).parallel(threads)
    if len(set(keys)) == len(keys):
        assert pipeline.distinct(*by).collect().equals(source)
        return
    for asked in (pipeline, pipeline.distinct(*by), pipeline.filter(lambda n: pc.is_null(n))):
        with pytest.raises(OrderError, match="declared to be distinct by") as raised:
            asked.collect()
        found = raised.value
        at = found.position + (0 if found.part is None else found.part * size)
        assert keys.count(keys[at]) > 1
        assert tuple(found.value.values()) == keys[at]


@pytest.mark.parametrize(
    ("first", "second", "are_equal"),
    [
        (0.0, -0.0, True),
        (float("nan"), float("nan"), True),
        (None, None, True),
        (1.0, None, False),
        (Decimal("1.0"), Decimal("1.00"), True),
        (b"a", b"a", True),
        (True, False, False),
        (pa.scalar(1, pa.timestamp("ns")), pa.scalar(2, pa.timestamp("ns")), False),
        (datetime(2026, 1, 1), datetime(2026, 1, 1), True),
        ([1, None], [1, None], True),
        ({"a": [1]}, {"a": [2]}, False),
        (pa.scalar("a", pa.dictionary(pa.int8(), pa.string())), "a", True),
    ],
)
def test_values_are_repeated_where_they_are_equal(first, second, are_equal):
    column = pa.array([getattr(each, "as_py", lambda: each)() for each in (first, second)])
    if isinstance(first, pa.Scalar):
        column = pa.array([first.as_py(), getattr(second, "as_py", lambda: second)()], first.type)
    source = Pipeline.of_table(pa.table({"x": column}), distinct_by=["x"])
    if not are_equal:
        assert source.count() == source.collect().num_rows == 2
        return
    with pytest.raises(OrderError, match=r"but row 1 \(the first is 0\) has x="):
        source.collect()


def read(parts, order):
    for number in order:
        list(parts[number]())


def test_repeated_rows_are_found_in_any_order_of_parts_and_once_more():
    parts = [[table([(1, "a"), (2, "a")])], [], [table([(3, "a")])], [table([(2, "b"), (4, "a")])]]
    splits = [lambda part=part: [b for each in part for b in each.to_batches()] for part in parts]
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [3, 0]):
        checked = distinct_as_declared(splits, ["n"], "rows")
        with pytest.raises(OrderError, match=r"row [01] of part [03] .* has n=2 as ano"):
            read(checked, order)
    checked = distinct_as_declared(splits[:3], ["n"], "rows")
    read(checked, (0, 1, 2, 2, 0, 1))  # parts may be read again


def test_what_a_limit_does_not_read_may_be_repeated():
    rows = table([(1, "a"), (2, "a"), (1, "b")])
    source = Pipeline.of_batches(lambda: rows.to_batches(1), rows.schema, distinct_by=["n"])
    assert source.distinct("n").limit(2).collect().num_rows == 2
    with pytest.raises(OrderError, match=r"row 2 .* has n=1 as another row has; use dist"):
        source.distinct("n").limit(3).collect()


def test_a_column_that_is_not_there_is_left_to_those_who_look_it_up():
    source = Pipeline.of_table(table([(2, "a"), (1, "a")]), sorted_by=["m"])
    assert source.collect().num_rows == 2
    with pytest.raises(UsageError):
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
