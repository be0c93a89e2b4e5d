# SPDX-License-Identifier: Apache-2.0

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa

from host.operators.aggregate import WindowAggregation
from host.operators.states import Phases
from host.query.quantities import Duration
from host.query.queries import Aggregate
from tests.host.operators.by_rows import SCHEMA, tables
from tests.host.operators.test_aggregate_stream import query, rows_of


def run(schema, asked, batches):
    work = WindowAggregation(schema, asked)
    for batch in batches:
        work.more_rows(batch)
    return work


@settings(max_examples=60)
@given(tables(), st.integers(1, 12), st.integers(1, 12), st.integers(1, 4))
def test_two_phases_give_what_one_does(table, one, other, parts):
    asked = query(max(one, other), min(one, other), ("item", "name"))
    phases = Phases(asked)
    panes = [
        run(SCHEMA, phases.panes, table.take(np.arange(at, table.num_rows, parts)).to_batches())
        for at in range(parts)
    ]
    schema = panes[0].schema
    windows = run(schema, phases.windows, [work.last_rows() for work in panes])
    whole = run(SCHEMA, asked, table.to_batches())
    result = phases.finished(windows.last_rows(), whole.schema)
    assert result.schema == whole.schema
    assert rows_of([result]) == rows_of([whole.last_rows()])


def test_phases_of_durations_and_of_keys_with_names_of_states():
    asked = query(Duration(12), Duration(8), ("state0",), aggregates={"m": "mean:price"})
    phases = Phases(asked)
    assert phases.panes.window == phases.panes.advance == Duration(4)
    assert dict(phases.panes.aggregates) == {
        "_state0": Aggregate("sum", "price"),
        "state1": Aggregate("count", "price"),
    }
    assert phases.windows.time == "window_start"
    assert (phases.windows.window, phases.windows.advance) == (Duration(12), Duration(8))


def test_a_state_is_computed_once():
    asked = query(4, 2, (), aggregates={"m": "mean:price", "s": "sum:price", "c": "count:price"})
    assert len(Phases(asked).panes.aggregates) == 2
    empty = pa.RecordBatch.from_pylist([], WindowAggregation(SCHEMA, Phases(asked).panes).schema)
    work = run(empty.schema, Phases(asked).windows, [empty])
    schema = WindowAggregation(SCHEMA, asked).schema
    assert Phases(asked).finished(work.last_rows(), schema).num_rows == 0
