# SPDX-License-Identifier: Apache-2.0
"""The rows of a partition pass as they are: counted, checked, and told where they stand."""

from types import SimpleNamespace

import pyarrow as pa
import pytest

from host import CountWindow, FailureError, TimeWindow
from host.errors import OrderError
from host.query.queries import Query
from host.session.intake import TaggedLayout
from spark_offload.partitioning.halos import HaloCounts
from spark_offload.partitioning.tagged import ALONE_COLUMN
from spark_offload.task.rows import PartitionRows
from tests.spark_offload.tagged_batches import in_batches, tagged_table
from tests.windows import over

SCHEMA = pa.schema([("t", pa.int64()), ("x", pa.int32())])
ROWS = [(0, 1, 0, 10, True), (1, 1, 0, 11, True), (1, 2, 1, 12, True), (0, 3, 1, 13, False),
        (1, 3, 2, 14, False), (1, 3, 3, 15, False), (0, 4, 2, 16, False)]  # fmt: skip
COUNTS = HaloCounts(((0, 0), (1, 2)), ((0, 0), (1, 1)), ((9, 9), (2, 2)))


def passing(table, *, cuts=(3,), how="inner", halos=None, is_sorted=False, schemas=(SCHEMA,) * 2):
    """Return rows of a partition, the batches of ``table`` not read yet."""
    window = TimeWindow(5) if halos is None else CountWindow(1)
    query = Query(time="t", **over(window), how=how, sorted=is_sorted)
    batches = iter(()) if table is None else in_batches(table, cuts)
    left, right = schemas
    task = SimpleNamespace(left=left, right=right, query=query, halos=halos)
    return PartitionRows(batches, task)


def test_rows_without_halos_all_count():
    table = tagged_table(ROWS)
    rows = passing(table)
    assert rows.layout == TaggedLayout(SCHEMA, SCHEMA, 3, shared=True)
    assert (rows.counts, rows.halo_rows) == ([0, 0], 0)
    assert rows.reader().read_all() == table
    assert (rows.counts, rows.halo_rows) == ([3, 4], 0)


def test_halo_rows_of_a_window_by_time_pass_and_are_counted_apart():
    table = tagged_table(ROWS, part=1)
    rows = passing(table, cuts=(0, 2, 2, 5), how="full")
    assert rows.layout == TaggedLayout(SCHEMA, SCHEMA, 3, shared=True, halo="halo")
    assert rows.reader().read_all() == table
    assert (rows.counts, rows.halo_rows) == ([2, 2], 3)


def test_the_window_by_time_tells_itself_which_rows_come_alone():
    alone = pa.array([False, False, True, True, True, False, False])
    table = tagged_table(ROWS, part=1).append_column(ALONE_COLUMN, alone)
    rows = passing(table, how="full")
    assert rows.layout.alone == ALONE_COLUMN
    assert rows.reader().read_all() == table


@pytest.mark.parametrize("cuts", [(), (1,), (2, 3), (1, 2, 3, 4)])
def test_halo_rows_of_a_count_based_window_are_cut_down_to_it(cuts):
    table = tagged_table(ROWS, part=1)
    rows = passing(table, cuts=cuts, halos=COUNTS)
    assert rows.layout.alone is None
    assert rows.reader().read_all().to_pylist() == [
        row for at, row in enumerate(table.to_pylist()) if at != 1
    ]
    assert (rows.counts, rows.halo_rows) == ([2, 2], 2)


def test_where_rows_come_alone_a_count_based_window_tells_which():
    rows = passing(tagged_table(ROWS, part=1), halos=COUNTS, how="full")
    assert rows.layout == TaggedLayout(
        SCHEMA, SCHEMA, 3, shared=True, halo="halo", alone=ALONE_COLUMN
    )
    found = rows.reader().read_all()
    assert found.schema.names[-1] == ALONE_COLUMN
    # The last range answers for each row behind which its own rows, or none, come.
    assert found[ALONE_COLUMN].to_pylist() == [True] * 6


@pytest.mark.parametrize("how", ["inner", "full"])
def test_an_input_that_has_changed_is_noticed_with_the_last_row(how):
    for lack in (1, 6):
        rows = passing(tagged_table(ROWS[:lack] + ROWS[lack + 1 :], part=1), halos=COUNTS, how=how)
        if lack == 6 and how == "inner":
            rows.reader().read_all()  # which has no need to know
            continue
        with pytest.raises(FailureError, match="input changed while it was joined"):
            rows.reader().read_all()


def test_the_sides_may_have_columns_of_their_own():
    right = pa.schema([("t", pa.int64()), ("y", pa.string()), ("z", pa.int8())])
    table = pa.table(
        {
            "side": pa.array([0, 1], pa.int8()),
            "order": pa.array([1, None], pa.int64()),
            "row": pa.array([0, 0], pa.int64()),
            "l0": pa.array([1, None], pa.int64()),
            "l1": pa.array([7, None], pa.int16()),  # not quite the type that was announced
            "r0": pa.array([None, None], pa.int64()),
            "r1": pa.array([None, "word"], pa.string()),
            "r2": pa.array([None, 3], pa.int8()),
        }
    )
    rows = passing(table, schemas=(SCHEMA, right))
    left = pa.schema([("t", pa.int64()), ("x", pa.int16())])
    assert rows.layout == TaggedLayout(left, right, 3)
    with pytest.raises(OrderError) as raised:
        rows.reader().read_all()
    assert "'right.t' is null in the row with t=null, y='word', z=3" in str(raised.value)
    table = table.set_column(1, "order", pa.array([None, 1], pa.int64()))
    with pytest.raises(OrderError) as raised:
        passing(table, schemas=(SCHEMA, right)).reader().read_all()
    assert "'left.t' is null in the row with t=1, x=7;" in str(raised.value)


@pytest.mark.parametrize("side", [0, 1])
def test_rows_that_go_back_in_time_are_named_if_the_input_was_declared_sorted(side):
    table = tagged_table([(side, 1, 8, 0, False), (side, 2, 3, 0, False)])
    assert passing(table).reader().read_all() == table
    with pytest.raises(OrderError, match=("left.t", "right.t")[side]):
        passing(table, is_sorted=True).reader().read_all()
    with pytest.raises(OrderError, match=("left.t", "right.t")[side]):
        passing(table, cuts=(1,), is_sorted=True).reader().read_all()


@pytest.mark.parametrize("halos", [None, COUNTS])
@pytest.mark.parametrize("how", ["inner", "full"])
def test_a_partition_without_a_batch_has_the_columns_that_were_announced(halos, how):
    right = pa.schema([("t", pa.int64()), ("y", pa.string())])
    rows = passing(None, schemas=(SCHEMA, right), halos=halos, how=how)
    assert rows.layout == TaggedLayout(SCHEMA, right, 3)
    found = rows.reader().read_all()
    assert found.num_rows == 0
    assert found.schema == pa.schema(
        [("side", pa.int8()), ("order", pa.int64()), ("row", pa.int64()), ("l0", pa.int64()),
         ("l1", pa.int32()), ("r0", pa.int64()), ("r1", pa.string())]
    )  # fmt: skip
    assert (rows.counts, rows.halo_rows) == ([0, 0], 0)
