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
    GraphError,
    Map,
    MapBatches,
    Node,
    Peek,
    Project,
    Rows,
    Stateless,
    Update,
    _columns_of,
)


class Act(Stateless):
    """An operator of the seed's figure: it notes what it sees, and perhaps adds one to it."""

    def __init__(self, name, log, *, mutates, lets_go=True, submits=True):
        self.name = name
        self.log = log
        self.mutates_input = mutates
        self.mutable_output = lets_go
        self.submits = submits

    def apply(self, rows):
        self.log.append((self.name, rows.array("x").tolist()))
        if self.mutates_input:
            rows.writable("x")[:] += 1
        if self.submits:
            yield rows if self.mutates_input else rows.handed_on()
            if not self.mutable_output:
                # The tuple is expected to be unchanged after the submit call returns.
                self.log.append((f"{self.name} after", rows.array("x").tolist()))

    def __str__(self):
        return self.name


def owned(values, counters):
    return Rows({"x": np.array(values)}, len(values), counters, owned=["x"])


def test_the_figure_of_nine_operators_copies_twice():
    """Seed 000, figure 1: O2 sends to four; copies from O2 to O5 and from O5 to O6 only."""
    log = []
    o3, o4 = Act("O3", log, mutates=False), Act("O4", log, mutates=False, submits=False)
    o6 = Act("O6", log, mutates=True, submits=False)
    o5 = Act("O5", log, mutates=True, lets_go=False)
    o7, o8 = Act("O7", log, mutates=False), Act("O8", log, mutates=False, submits=False)
    o9 = Act("O9", log, mutates=True, submits=False)
    o2 = Act("O2", log, mutates=True)
    o1 = Act("O1", log, mutates=False)
    tree = Node(
        o2,
        [Node(o3, [Node(o4)]), Node(o5, [Node(o6)]), Node(o7, [Node(o8)]), Node(o9)],
    )
    fused = Fused(Node(o1, [tree]), mutable_input=True)
    assert fused.copies == [("O2", "O5"), ("O5", "O6")]

    counters = CopyCounters()
    assert list(fused.pull(owned([10], counters))) == []
    assert counters.copies == 2
    assert log == [
        ("O1", [10]), ("O2", [10]), ("O3", [11]), ("O4", [11]),
        ("O5", [11]), ("O6", [12]), ("O5 after", [12]),
        ("O7", [11]), ("O8", [11]), ("O9", [11]),
    ]  # fmt: skip


def test_rows_of_ones_own_are_written_in_place():
    log, counters = [], CopyCounters()
    chain = [Act("O1", log, mutates=True), Act("O2", log, mutates=True)]
    assert len(list(Fused.chain(chain, mutable_input=True).pull(owned([1], counters)))) == 1
    assert (counters.copies, counters.columns) == (0, 0)


@st.composite
def trees(draw, depth=3):
    kinds = st.booleans()
    shape = st.recursive(
        st.tuples(kinds, kinds, st.just([])),
        lambda inner: st.tuples(kinds, kinds, st.lists(inner, max_size=3)),
        max_leaves=9,
    )
    return draw(shape)


def simulate(tree, value, numbers, log):
    """What every operator of a tree sees, if everybody had his own copy."""
    mutates, _, consumers = tree
    number = next(numbers)
    log.append((f"O{number}", [value]))
    for consumer in consumers:
        simulate(consumer, value + mutates, numbers, log)


@given(trees())
def test_in_any_tree_nobody_sees_the_change_of_another(tree):
    def build(part, numbers):
        mutates, lets_go, consumers = part
        operator = Act(f"O{next(numbers)}", log, mutates=mutates, lets_go=lets_go)
        operator.submits = bool(consumers)
        return Node(operator, [build(each, numbers) for each in consumers])

    log, expected = [], []
    fused = Fused(build(tree, iter(range(99))), mutable_input=True)
    assert len(list(fused.pull(owned([5], CopyCounters())))) <= 1
    simulate(tree, 5, iter(range(99)), expected)
    assert [entry for entry in log if "after" not in entry[0]] == expected


def run(batch, *operators):
    counters = CopyCounters()
    fused = Fused.chain(operators, mutable_input=False)
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
