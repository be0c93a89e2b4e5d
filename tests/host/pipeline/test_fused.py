# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from host.errors import UsageError
from host.pipeline.row_operators import (
    CopyCounters,
    Filter,
    FlatMap,
    Fused,
    Map,
    MapBatches,
    Peek,
    Project,
    Rows,
    Stateless,
    Update,
    _columns_of,
)
from host.runtime import GraphError, Passing, plan_transfers


def test_the_figure_of_nine_operators_copies_twice():
    """Seed 000, figure 1: O2 sends to four; copies from O2 to O5 and from O5 to O6 only."""
    writes, keeps = {"O2", "O5", "O6", "O9"}, {"O5"}
    sends = {"O1": ["O2"], "O2": ["O3", "O5", "O7", "O9"], "O3": ["O4"], "O5": ["O6"], "O7": ["O8"]}
    copies = [
        (sender, receiver)
        for sender, receivers in sends.items()
        for receiver, transfer in zip(
            receivers,
            plan_transfers(sender not in keeps, [each in writes for each in receivers]),
            strict=True,
        )
        if transfer.passing is Passing.COPY
    ]
    assert copies == [("O2", "O5"), ("O5", "O6")]


class Keeping(Stateless):
    """Writes into what it receives, and refers to what it has submitted."""

    mutates_input, mutable_output = True, False

    def __init__(self, seen):
        self.seen = seen

    def apply(self, rows):
        rows.writable("y")[:] += 1
        yield rows
        self.seen.append(rows.array("y").tolist())


def test_nobody_sees_the_change_of_a_later_operator():
    seen = []
    out, counters = run(BATCH, Keeping(seen), Keeping(seen))
    assert out[0].column("y").to_pylist() == [12, 22, 32, 42]
    assert seen == [[12, 22, 32, 42], [11, 21, 31, 41]]
    assert counters.copies == 2


def run(batch, *operators):
    counters = CopyCounters()
    fused = Fused(operators)
    pulled = fused.pull(Rows.of_batch(batch, counters))
    return [rows.batch() for rows in pulled if rows is not None], counters


BATCH = pa.record_batch({"x": [1, 2, None, 4], "y": [10, 20, 30, 40], "s": ["a", "b", "c", "d"]})


def test_a_column_is_filtered_once_for_all_filters_and_never_if_it_is_not_read():
    out, counters = run(
        BATCH,
        Filter(lambda x: pc.greater(x, 1)),
        Filter(lambda y: pc.less(y, 40)),
        Project({"s": "s"}),
    )
    assert out[0].to_pydict() == {"s": ["b"]}
    # y once for the second condition, s once at the end, x never.
    assert counters.columns == 2


@given(
    st.lists(st.integers(-5, 5), max_size=30),
    st.lists(st.tuples(st.sampled_from("xy"), st.integers(-5, 5)), max_size=5),
)
def test_filters_and_maps_do_what_lists_do(values, conditions):
    table = [{"x": value, "y": -value} for value in values]
    batch = pa.RecordBatch.from_pylist(table, pa.schema([("x", pa.int64()), ("y", pa.int64())]))
    operators = []
    for name, least in conditions:
        operators += [
            Filter(lambda column, least=least: pc.greater_equal(column, least), [name]),
            Map("y", lambda x, y: pc.add(x, y)),
        ]
        table = [{"x": row["x"], "y": row["x"] + row["y"]} for row in table if row[name] >= least]
    out, _ = run(batch, *operators, Project({"y": "y", "x": "x"}))
    assert [row for each in out for row in each.to_pylist()] == table


def test_an_update_copies_its_column_once_and_nothing_else():
    before = BATCH.column("y").to_pylist()
    out, counters = run(
        BATCH, Update("y", lambda y: np.add(y, 1, out=y)), Update("y", lambda y: np.negative(y, y))
    )
    assert out[0].column("y").to_pylist() == [-11, -21, -31, -41]
    assert BATCH.column("y").to_pylist() == before
    assert (counters.copies, counters.columns) == (1, 1)
    assert out[0].column("s").buffers()[2].address == BATCH.column("s").buffers()[2].address


def test_a_selection_and_an_update_share_one_copy():
    out, counters = run(
        BATCH, Filter(lambda x: pc.greater(x, 1)), Update("y", lambda y: np.negative(y, y)),
        Project({"y": "y"}),
    )  # fmt: skip
    assert out[0].to_pydict() == {"y": [-20, -40]}
    assert counters.columns == 1


def test_what_was_shown_is_not_changed_afterwards():
    shown = []
    increment = Update("y", lambda y: np.add(y, 1, out=y))
    out, _ = run(BATCH, increment, Peek(shown.append), increment)
    assert shown[0].column("y").to_pylist() == [11, 21, 31, 41]
    assert out[0].column("y").to_pylist() == [12, 22, 32, 42]


def test_writing_through_a_constant_reference_raises():
    class Liar(Stateless):
        def apply(self, rows):
            rows.writable("y")[:] = 0
            yield rows

    with pytest.raises(GraphError, match="must declare that it mutates"):
        run(BATCH, Liar())
    rows = Rows.of_batch(BATCH, CopyCounters())
    with pytest.raises(ValueError, match="read-only"):
        rows.array("y")[:] = 0


def test_batches_are_replaced_by_batches():
    doubled = MapBatches(lambda batch: pa.concat_batches([batch, batch]))
    parts = FlatMap(
        lambda batch: [batch.slice(0, 1), batch.slice(1, 0), batch.slice(2)], BATCH.schema
    )
    out, _ = run(BATCH, parts, doubled)
    assert [batch.column("y").to_pylist() for batch in out] == [[10, 10], [30, 40, 30, 40]]
    wrong = FlatMap(lambda batch: [batch.select(["x"])], BATCH.schema)
    with pytest.raises(UsageError, match="flat_map returned columns"):
        run(BATCH, wrong)


def test_schemas_are_found_without_rows():
    schema = BATCH.schema
    assert Map("z", lambda x: pc.cast(x, pa.float32())).schema(schema).field("z").type == "float"
    assert Project({"a": "s"}).schema(schema).names == ["a"]
    assert Update("y", abs).schema(schema) == schema
    assert Filter(lambda x: x).schema(schema) is schema


def test_mistakes_are_named():
    with pytest.raises(UsageError, match="'z'"):
        run(BATCH, Filter(lambda z: z))
    with pytest.raises(UsageError, match="4 booleans"):
        run(BATCH, Filter(lambda x: x))
    with pytest.raises(UsageError, match="must have 4 values"):
        run(BATCH, Map("z", lambda x: x.slice(1)))
    with pytest.raises(UsageError, match="has nulls"):
        run(BATCH, Update("x", abs))
    with pytest.raises(UsageError, match="does not say which columns"):
        Filter(lambda *columns: True)
    assert _columns_of(lambda a, b, c=1: None, None) == ("a", "b")
