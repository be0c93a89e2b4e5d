# SPDX-License-Identifier: Apache-2.0
"""Joins of several inputs are those of nested loops, in one total order."""

from datetime import UTC, datetime, timedelta
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdl.parameters import JoinParameters, KeyField
from host import UsageError, join_many, open_device
from host.__main__ import main
from host.errors import OrderError
from tests.host.simulated_bundle import simulated_bundle

NAMES = ("a", "b", "c", "d")
ROWS = st.lists(
    st.tuples(st.integers(-9, 9), st.integers(0, 1), st.none() | st.integers(-3, 3)), max_size=7
)
WHERE = "a.x < b.x and (c.x == a.x or abs(c.x - b.x) <= 1)"


def table_of(rows, temporal=False):
    """Return rows as a table, whose times may be timestamps."""
    times = [row[0] for row in rows]
    if temporal:
        times = pa.array([at * 1_000_000 for at in times], pa.timestamp("us", "UTC"))
    else:
        times = pa.array(times, pa.int64())
    columns = {"t": times, "k": pa.array([row[1] for row in rows], pa.int64())}
    return pa.table(columns | {"x": pa.array([row[2] for row in rows], pa.int64())})


def share(times, within, advance):
    """Tell whether all times are near enough, or in one window."""
    if advance is None:
        return max(times) - min(times) <= within
    return any(
        number * advance <= min(times) and max(times) < number * advance + within
        for number in range(-40, 40)
    )


def holds(rows):
    a, b, c = (row[2] for row in rows[:3])
    if None in (a, b) or not a < b:
        return False
    return c is not None and (c == a or abs(c - b) <= 1)


def nested_loops(inputs, within, advance, where):
    """Return the numbers of the rows of each result, in the order of results."""
    arrivals = sorted(
        (row[0], at, number) for at, rows in enumerate(inputs) for number, row in enumerate(rows)
    )
    places = {arrival[1:]: place for place, arrival in enumerate(arrivals)}
    found = []
    for numbers in product(*(range(len(rows)) for rows in inputs)):
        rows = [rows[number] for rows, number in zip(inputs, numbers, strict=True)]
        if not share([row[0] for row in rows], within, advance):
            continue
        if len({row[1] for row in rows}) > 1 or (where and not holds(rows)):
            continue
        arrived = [places[pair] for pair in enumerate(numbers)]
        found.append(((max(arrived), *arrived), numbers))
    return [numbers for _, numbers in sorted(found)]


def rows_of(inputs, results):
    return [
        tuple(value for rows, number in zip(inputs, numbers, strict=True) for value in rows[number])
        for numbers in results
    ]


@settings(max_examples=60, deadline=None)
@given(
    inputs=st.lists(ROWS, min_size=2, max_size=4),
    within=st.integers(0, 6),
    advance=st.none() | st.integers(1, 6),
    where=st.booleans(),
)
def test_results_are_those_of_nested_loops_in_order(inputs, within, advance, where):
    where = where and len(inputs) > 2
    advance = None if advance is None else min(advance, within) or None
    tables = dict(zip(NAMES, map(table_of, inputs), strict=False))
    found = join_many(
        tables, time="t", on="k", within=within, advance=advance, where=WHERE if where else None,
        device="software:",
    )  # fmt: skip
    wanted = nested_loops(inputs, within, advance, where)
    assert found.column_names == [f"{name}.{own}" for name in tables for own in "tkx"]
    assert [tuple(row.values()) for row in found.to_pylist()] == rows_of(inputs, wanted)


THREE = (
    [(-4, 0, 1), (0, 1, -2), (1, 0, 0), (1, 0, None), (6, 1, 1)],
    [(-3, 0, 2), (0, 1, 1), (2, 0, 1), (2, 0, 3), (5, 1, 2)],
    [(-4, 0, 1), (1, 1, -2), (1, 0, 0), (3, 0, 2), (6, 1, 3), (6, 1, 1)],
)


@pytest.mark.long
def test_a_device_has_the_same_results(tmp_path):
    keys = tuple(KeyField(name=f"f{at}", bits=32) for at in range(4))
    parameters = JoinParameters.of(
        cores=2, sub_window=16, probes=2, timestamp_bits=32, probe_bits=4, keys=keys
    )
    address = simulated_bundle(parameters, tmp_path / "bundle")
    tables = dict(zip(NAMES, map(table_of, THREE), strict=False))
    words = {"time": "t", "on": "k", "where": WHERE}
    with open_device(address) as device:
        for windows in ({"within": 4}, {"within": 5, "advance": 3}):
            found = join_many(tables, **words, **windows, device=device)
            wanted = nested_loops(THREE, windows["within"], windows.get("advance"), True)
            assert [tuple(row.values()) for row in found.to_pylist()] == rows_of(THREE, wanted)


def test_files_with_columns_of_their_own(tmp_path):
    options = ["--output", str(tmp_path / "out.parquet")]
    for name, rows, columns in zip(NAMES, THREE, ("tkx", "ukx", "vnx"), strict=False):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(table_of(rows, temporal=True).rename_columns(list(columns)), path)
        options += ["--input", f"{name}={path}"]
    asked = ["--time", "t,u,v", "--on", "k,k,n", "--within", "4s", "--where", WHERE]
    assert main(["join-many", *options, *asked]) == 0
    found = pq.read_table(tmp_path / "out.parquet")
    zero = datetime(1970, 1, 1, tzinfo=UTC)
    inputs = [[(zero + timedelta(seconds=row[0]), *row[1:]) for row in rows] for rows in THREE]
    wanted = rows_of(inputs, nested_loops(THREE, 4, None, True))
    assert [tuple(row.values()) for row in found.to_pylist()] == wanted
    assert len(wanted) > 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"where": "a.x < z.x"}, ["'z' is no input", "name one of a, b, c"]),
        ({"where": "1 < 2"}, ["reads no input"]),
        ({"time": ["t", "t"]}, ["time names a column", "each of them"]),
        ({"time": ["t", "t", "when"]}, ["no column 'when' in input 'c'"]),
        ({"within": 3, "advance": 4}, ["must advance by at most that"]),
        ({"on": "missing"}, ["no column 'missing' in input 'a'"]),
    ],
)
def test_what_is_refused(changes, words):
    tables = dict(zip(NAMES, map(table_of, THREE), strict=False))
    with pytest.raises(UsageError) as caught:
        join_many(tables, **{"time": "t", "within": 3, "device": "software:"} | changes)
    assert [word for word in words if word not in str(caught.value)] == []


@given(inputs=st.lists(ROWS.filter(bool), min_size=2, max_size=4), data=st.data())
def test_a_row_without_a_time_is_named_by_its_input(inputs, data):
    number = data.draw(st.integers(0, len(inputs) - 1))
    place = data.draw(st.integers(0, len(inputs[number]) - 1))
    tables = dict(zip(NAMES, map(table_of, inputs), strict=False))
    name = NAMES[number]
    times = tables[name].column("t").to_pylist()
    times[place] = None
    tables[name] = tables[name].set_column(0, "t", [pa.array(times, pa.int64())])
    with pytest.raises(OrderError, match=rf"'{name}\.t' is null in row {place} \(") as caught:
        join_many(tables, time="t", on="k", within=3, device="software:")
    assert "latest" not in str(caught.value)
    tables[name] = tables[name].set_column(0, "t", pa.nulls(len(times)))
    with pytest.raises(UsageError, match=rf"'{name}\.t' has no type"):
        join_many(tables, time="t", on="k", within=3, device="software:")


def test_times_are_of_one_type():
    tables = {"a": table_of(THREE[0]), "b": table_of(THREE[1], temporal=True)}
    with pytest.raises(UsageError, match="must be of one type"):
        join_many(tables, time="t", within=3)
    with pytest.raises(UsageError, match="two inputs or more"):
        join_many({"a": tables["a"]}, time="t", within=3)
    with pytest.raises(UsageError, match="names of their own"):
        join_many({"a b": tables["a"], "b": tables["a"]}, time="t", within=3)
