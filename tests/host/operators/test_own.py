# SPDX-License-Identifier: Apache-2.0
"""Operators of Python functions, run as a program and as a command run them."""

from collections import defaultdict
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median_low

from hypothesis import given, settings
from hypothesis import strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from examples import medians
from host import UsageError, operate
from host.__main__ import main
from host.operators.operate import OperatorQuery
from host.operators.own import OwnOperator
from host.operators.windowed import Field, Key, Output, Reduction, WindowedOperator

MEDIANS = medians.OPERATOR
FILE = Path(medians.__file__)
few = settings(max_examples=25)
READINGS = st.lists(
    st.tuples(st.integers(0, 200), st.sampled_from(["roof", "cellar"]), st.integers(-5, 5)),
    max_size=30,
)


def table(rows):
    names = ["timestamp", "sensor", "celsius"]
    kinds = pa.schema(zip(names, [pa.int64(), pa.string(), pa.float64()], strict=True))
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], kinds)


def by_definition(rows, size, advance):
    windows = defaultdict(list)
    for time, sensor, celsius in rows:
        for left in range((time - size) // advance * advance, time + 1, advance):
            if left <= time < left + size:
                windows[left + size, sensor].append(float(celsius))
    return [
        (end, sensor, median_low(values), len(values))
        for (end, sensor), values in sorted(windows.items())
    ]


@few
@given(READINGS, st.integers(1, 60), st.data())
def test_a_state_is_any_object(rows, size, data):
    advance = data.draw(st.integers(1, size))
    found = operate(table(rows), replace(MEDIANS, size=size, advance=advance))
    assert found.schema.names == ["window_end", "sensor", "median", "readings"]
    assert [tuple(row.values()) for row in found.to_pylist()] == by_definition(rows, size, advance)


def total(windows, arrival):
    before = windows[0].state or 0
    return [before + arrival.payload["price"]], []


@few
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 3), st.integers(-9, 9)), max_size=25),
    st.integers(1, 20),
)
def test_functions_give_what_the_same_description_gives(rows, size):
    described = WindowedOperator(
        name="totals", size=size, advance=1,
        fields=[Field("item", 2, signed=False), Field("price", 5)], keys=[Key("item")],
        reductions=[Reduction("total", "sum", "price")], outputs=[Output("total", "total")],
    )  # fmt: skip
    own = OwnOperator(
        name="totals", size=size, advance=1, keys=lambda one: [one.payload["item"]], update=total,
        output=lambda windows: [{"item": windows[0].key, "total": windows[0].state}],
        schema=pa.schema([("item", pa.int64()), ("total", pa.int64())]),
    )  # fmt: skip
    names = ["timestamp", "item", "price"]
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    given_rows = pa.table([pa.array(one, pa.int64()) for one in columns], names)
    expected = operate(given_rows, described).drop_columns(["window_start"])
    assert operate(given_rows, own).equals(expected)


def prefixes(windows, arrival):
    """Pair a word with those of the other side that it begins with, or that begin with it."""
    mine, other = arrival.input, 1 - arrival.input
    word = arrival.payload["word"]
    met = windows[other].state or []
    pairs = [
        {"left": one if mine else word, "right": word if mine else one}
        for one in met
        if one.startswith(word) or word.startswith(one)
    ]
    states = [window.state for window in windows]
    states[mine] = [*(states[mine] or []), word]
    return states, pairs


def test_two_inputs_of_texts_with_times_of_dates():
    begin = datetime(2026, 1, 1)
    sides = [
        pa.table({"at": [begin + timedelta(seconds=n) for n in times], "word": words})
        for times, words in (([3, 0], ["be", "alpha"]), ([1, 2, 11], ["al", "bet", "alphabet"]))
    ]
    operator = OwnOperator(
        name="prefixes", size=10, advance=10, inputs=2, keys=lambda one: [one.payload["word"][0]],
        update=prefixes, schema=pa.schema([("left", pa.string()), ("right", pa.string())]),
    )  # fmt: skip
    found = operate(sides[0], operator, sides[1], time="at", unit="1s")
    end = begin + timedelta(seconds=10)
    assert found.to_pylist() == [
        {"window_end": end, "left": "alpha", "right": "al"},
        {"window_end": end, "left": "be", "right": "bet"},
    ]
    assert found.schema.field("window_end").type == sides[0].schema.field("at").type
    with pytest.raises(UsageError, match="has 2 inputs, not 1: give it the right one too"):
        operate(sides[0], operator, time="at", unit="1s")
    with pytest.raises(UsageError, match="say how long a unit"):
        operate(sides[0], operator, sides[1], time="at")


def test_the_command_runs_the_functions_of_a_file(tmp_path, capsys):
    rows = [(7, "roof", 3), (2, "roof", 1), (130, "cellar", 2)]
    pq.write_table(table(rows), tmp_path / "in.parquet")
    words = ["operate", str(FILE), "--input", str(tmp_path / "in.parquet"), "--output"]
    answer = tmp_path / "out.parquet"
    assert main([*words, str(answer), "--explain"]) == 0
    said = capsys.readouterr().out
    assert "functions 'medians', windows of 60 every 20" in said
    assert "the reference operator, row by row" in said
    assert [tuple(row.values()) for row in pq.read_table(answer).to_pylist()] == by_definition(
        rows, 60, 20
    )
    assert main([*words, str(answer), "--verify"]) == 2
    assert "leave it out" in capsys.readouterr().err
    assert main([*words, str(answer), "--device", "sim:"]) == 2
    assert "which no accelerator has" in capsys.readouterr().err


def test_a_query_for_devices_and_tasks_says_where_functions_run():
    with pytest.raises(UsageError, match="one of Python functions runs in host.operate"):
        OperatorQuery(MEDIANS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"advance": 0}, "1 <= advance <= size"),
        ({"advance": 61}, "1 <= advance <= size"),
        ({"inputs": 3}, "an operator has 1 or 2"),
    ],
)
def test_an_operator_without_windows_or_inputs_is_refused(changes, message):
    with pytest.raises(UsageError, match=message):
        replace(MEDIANS, **changes)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"sensor": "roof"}, "has no 'median'"),
        (7, "put out 7, which has no 'sensor'"),
        ({"sensor": "roof", "median": "warm", "readings": 1}, "'median' that is no double"),
    ],
)
def test_what_the_schema_does_not_say_is_refused(payload, message):
    with pytest.raises(UsageError, match=message):
        operate(table([(0, "roof", 1)]), replace(MEDIANS, output=lambda windows: [payload]))
