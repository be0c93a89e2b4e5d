# SPDX-License-Identifier: Apache-2.0
"""Rows that are pushed bit by bit have the answer of whole tables, also behind a saved state."""

import pickle

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host import open_device
from host.errors import OrderError, UsageError
from host.query.queries import Query
from host.session.engine import JoinEngine
from host.session.join import join_tables
from tests.host.small_bundles import BUNDLES, write_manifest

QUERIES = {
    "equality": {"on": "k", "within": 6},
    "text": {"on": "name", "within": 4},
    "rows": {"on": "k", "rows": 5},
    "band": {"band": {"v": (-2, 2)}, "within": 5},
}


def tables(rng, counts):
    sides = []
    for count in counts:
        keys = rng.integers(0, 4, count)
        sides.append(
            pa.table(
                {
                    "t": np.sort(rng.integers(0, 40, count)),
                    "k": pa.array(keys, mask=rng.random(count) < 0.1),
                    "name": pa.array([f"key {key}" for key in keys], pa.string()),
                    "v": rng.integers(-5, 5, count),
                }
            )
        )
    return sides


def pushes(rng, sides):
    """Yield slices of both sides, some of them empty or of one side only."""
    at = [0, 0]
    while any(begin < side.num_rows for begin, side in zip(at, sides, strict=True)):
        parts = []
        for number, side in enumerate(sides):
            take = int(rng.integers(0, 12))
            parts.append(side.slice(at[number], take) if rng.random() < 0.8 else None)
            at[number] += take if parts[-1] is not None else 0
        yield parts


def query(name, **more):
    return Query(time="t", **QUERIES[name], **more)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 1 << 32), st.sampled_from(list(QUERIES)),
    st.sampled_from(["inner", "left", "full", "anti"]),
)  # fmt: skip
def test_pushed_rows_have_the_answer_of_whole_tables(seed, name, how):
    rng = np.random.default_rng(seed)
    sides, asked = tables(rng, rng.integers(0, 50, 2)), query(name, how=how)
    with open_device("software:") as device:
        expected = join_tables(*sides, asked, device).table
    engine = JoinEngine(asked, *(side.schema for side in sides))
    found = [batch for parts in pushes(rng, sides) for batch in engine.push(*parts)]
    found += engine.finish()
    assert pa.Table.from_batches(found, engine.schema).equals(expected)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from(list(QUERIES)))
def test_another_engine_goes_on_from_a_saved_state(seed, name):
    """Also from the state of an engine that went on itself, whatever waits for the other side."""
    rng = np.random.default_rng(seed)
    sides, asked = tables(rng, rng.integers(0, 50, 2)), query(name)
    schemas = [side.schema for side in sides]
    with open_device("software:") as device:
        expected = join_tables(*sides, asked, device).table
    engine, found = JoinEngine(asked, *schemas), []
    for parts in pushes(rng, sides):
        found += engine.push(*parts)
        if rng.random() < 0.3:
            state = pickle.loads(pickle.dumps(engine.save()))
            engine.close()
            engine = JoinEngine(asked, *schemas, state=state)
    found += engine.finish()
    assert pa.Table.from_batches(found, engine.schema).equals(expected)


def test_results_come_as_soon_as_no_earlier_row_can_follow():
    sides = [pa.table({"t": [1, 2, 3], "k": [7, 8, 9]})] * 2
    with JoinEngine(Query(time="t", on="k", within=1), *(side.schema for side in sides)) as engine:
        assert not engine.push(left=sides[0].slice(0, 2))
        (found,) = engine.push(right=sides[1])
        assert found["k"].to_pylist() == [7]  # a left row at the time 2 may still follow
        state = engine.save()
        assert [rows.num_rows for rows in state.rows] == [2, 3]
        assert state.answered == (2, 1)
        assert pa.Table.from_batches(engine.finish())["k"].to_pylist() == [8]


def test_a_state_holds_windows_and_not_the_past():
    rows = pa.table({"t": np.arange(5000), "k": np.arange(5000) % 7})
    with JoinEngine(Query(time="t", on="k", within=10), rows.schema, rows.schema) as engine:
        for begin in range(0, 5000, 100):
            engine.push(rows.slice(begin, 100), rows.slice(begin, 100))
        assert all(rows.num_rows < 30 for rows in engine.save().rows)


@pytest.mark.parametrize("how", ["inner", "full"])
def test_a_device_answers_pushed_rows(tmp_path, how):
    parameters = BUNDLES["groups"].with_(sub_window=64, keys=BUNDLES["plain"].keys[:1])
    write_manifest(parameters, tmp_path)
    rng = np.random.default_rng(3)
    asked = Query(time="t", band={"v": (-2, 2)}, within=3, how=how)
    sides = [side.select(["t", "v"]) for side in tables(rng, (30, 40))]
    with open_device(f"software:{tmp_path}") as device:
        expected = join_tables(*sides, asked, device).table
        with JoinEngine(asked, *(side.schema for side in sides), device) as engine:
            found = [batch for parts in pushes(rng, sides) for batch in engine.push(*parts)]
            with pytest.raises(UsageError, match="state of the software engine can be saved"):
                engine.save()
            found += engine.finish()
    assert pa.Table.from_batches(found, engine.schema).equals(expected)


def test_wrong_use_is_refused_by_name():
    rows = pa.table({"t": [5], "k": [1]})
    engine = JoinEngine(Query(time="t", on="k", within=1), rows.schema, rows.schema)
    with pytest.raises(UsageError, match="columns"):
        engine.push(rows.rename_columns(["t", "other"]))
    engine.push(rows, rows)
    with pytest.raises(OrderError):
        engine.push(pa.table({"t": [4], "k": [1]}), pa.table({"t": [6], "k": [1]}))
    with pytest.raises(UsageError, match="has ended"):
        engine.push(rows)
    engine = JoinEngine(Query(time="t", on="k", within=1, how="left"), rows.schema, rows.schema)
    with pytest.raises(UsageError, match="state of an inner join"):
        engine.save()
    engine.finish()
    with pytest.raises(UsageError, match="has ended"):
        engine.push(rows)
