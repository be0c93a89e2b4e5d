# SPDX-License-Identifier: Apache-2.0
"""Tasks of as-of joins give the rows of the whole tables, and hold few of them at a time."""

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from host.operators.asof import AsofJoin
from host.query.queries import AsofQuery
from spark_offload.task import operators
from spark_offload.task import rows as rows_of_tasks
from spark_offload.task.operators import AsofTask
from tests.host.operators.test_asof_stream import LEFT, QUERY, RIGHT, ROW, pieces, tables

TAGS = [("side", pa.int8()), ("order", pa.int64()), ("row", pa.int64())]


def tagged(left, right, begin=0):
    """Return rows as a task gets them, in the order of arrival."""
    numbers = np.arange(begin, begin + max(map(len, (left, right))))
    sides = []
    for side, table in enumerate((left, right)):
        tags = [[side] * len(table), table.column(0).to_pylist(), numbers[: len(table)]]
        columns = {name: pa.array(tag, kind) for (name, kind), tag in zip(TAGS, tags, strict=True)}
        for of, letter in enumerate("lr"):
            for at, field in enumerate((LEFT, RIGHT)[of]):
                own = table.column(at).combine_chunks() if of == side else None
                columns[f"{letter}{at}"] = pa.nulls(len(table), field.type) if own is None else own
        sides.append(pa.table(columns))
    whole = pa.concat_tables(sides)
    return whole.sort_by([(name, "ascending") for name in ("order", "side", "row")])


def answer(batches, query):
    """Yield what a task yields for the rows of its partition."""
    output = AsofJoin(LEFT.empty_table(), RIGHT.empty_table(), query).schema
    task = AsofTask(asof=query, query=query.pairs, left=LEFT, right=RIGHT, output=output)
    return task.function("as-of", lambda metrics: None)(iter(batches))


@settings(max_examples=100)
@given(st.lists(ROW, max_size=24), QUERY, st.sampled_from([1, 5]), st.sampled_from([0, 200]))
def test_rows_in_pieces_give_the_same_rows_in_the_same_order(rows, query, piece, memory):
    whole = tables(rows)
    tags = tagged(*whole).combine_chunks()
    batches = [batch for cut in pieces(rows) for batch in tags[slice(*cut)].to_batches()]
    with patch.multiple(operators, BUFFER_ROWS=piece, STACK_BYTES=memory):
        found = [row for batch in answer(batches, query) for row in batch.to_pylist()]
    assert found == AsofJoin(*whole, query).table().to_pylist()


@pytest.mark.parametrize("times", [[-(1 << 63), (1 << 63) - 1], [-(1 << 63), 0, (1 << 63) - 1]])
def test_distances_of_any_size_are_compared(times):
    left = pa.table(
        [pa.array(times), pa.array(["a"] * len(times)), pa.array([0] * len(times))], LEFT
    )
    right = pa.table(
        [pa.array([times[0], times[-1] - 1]), pa.array(["a", "a"]), pa.array([1, 2])], RIGHT
    )
    query = AsofQuery(time=("t", "u"), on=[("k", "l")], direction="nearest")
    found = [
        row
        for batch in answer(tagged(left, right).to_batches(), query)
        for row in batch.to_pylist()
    ]
    assert [row["y"] for row in found] == {2: [1, 2], 3: [1, 2, 2]}[len(times)]


def peak(query, parts):
    """Return the most bytes that a task of so many parts of its rows holds."""
    rows, most, before = 100, 0, pa.total_allocated_bytes()

    def look():
        nonlocal most
        most = max(most, pa.total_allocated_bytes() - before)

    def batches():
        for part in range(parts):
            times = pa.array(np.arange(rows) + part * rows)
            keys = ["gone" if at % 50 == 0 else f"key {at % 7}" for at in range(rows)]
            ours = pa.table([times, pa.array(keys), times], LEFT)
            theirs = pa.table(ours.columns, RIGHT)
            if part:  # no later right row for any of these left rows, the first of which comes soon
                theirs = theirs.filter(pc.not_equal(theirs["l"], "gone"))
            yield from tagged(ours, theirs, part * rows).combine_chunks().to_batches()
            look()

    found = 0
    with (
        patch.multiple(operators, BUFFER_ROWS=500, STACK_BYTES=20_000),
        patch.object(rows_of_tasks, "BUFFER_ROWS", 500),
    ):
        for batch in answer(batches(), query):
            found += batch.num_rows
            look()
    assert found == rows * parts
    return most


@pytest.mark.few(1)
@pytest.mark.parametrize("direction", ["forward", "nearest"])
def test_rows_that_never_find_a_later_partner_do_not_stay_in_memory(direction):
    query = AsofQuery(time=("t", "u"), on=[("k", "l")], direction=direction)
    assert peak(query, 300) < 1.5 * peak(query, 15)
