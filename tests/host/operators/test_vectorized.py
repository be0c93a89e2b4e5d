# SPDX-License-Identifier: Apache-2.0

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from host.errors import AcceleratorLimitError, UsageError
from host.operators.operate import OperatorQuery, operate_tables
from host.operators.windowed import Field, Key, Output, Reduction, WindowedOperator
from host.query.queries import BOUNDARIES
from tests.host.operators.brute_force import arrivals, window_results
from tests.host.operators.operators import ALL, EVERYTHING, KEYLESS

AGGREGATES = [operator for operator in ALL if operator.kind == "aggregate"]


def run_columns(operator, times, columns):
    columns = {name: np.asarray(values) for name, values in columns.items()}
    table = pa.table({"timestamp": np.asarray(times), **columns})
    return operate_tables([table], OperatorQuery(operator))


def run(operator, rows):
    columns = {f.name: [fields[f.name] for _, _, fields in rows] for f in operator.fields}
    arrays = {name: np.array(values, np.int64) for name, values in columns.items()}
    return run_columns(operator, np.array([time for time, _, _ in rows], np.int64), arrays)


def as_rows(operator, results):
    """Return (end, key, values) of each result."""
    behind = 2 + len(operator.key_names)
    rows = zip(*map(pa.ChunkedArray.to_pylist, results.columns), strict=True)
    return [(row[1], row[2:behind], row[behind:]) for row in rows]


def as_floats(operator, results):
    """Turn the exact means of the definition into what arrays hold."""
    divided = [output.per is not None for output in operator.outputs]
    return [
        (end, key, tuple(float(v) if d else v for v, d in zip(values, divided, strict=True)))
        for end, key, values in results
    ]


@pytest.mark.few(3)
@pytest.mark.parametrize("advance", [1, 2, None])
@pytest.mark.parametrize("operator", AGGREGATES, ids=lambda operator: operator.name)
@settings(max_examples=40)
@given(data=st.data())
def test_arrays_give_what_the_definition_says(operator, advance, data):
    chosen = operator.with_(advance=advance or operator.advance)
    rows = data.draw(arrivals(chosen, is_sorted=False))
    got = run(chosen, rows)
    assert as_rows(chosen, got) == as_floats(chosen, window_results(chosen, rows))
    starts, ends = (got[name].to_numpy() for name in BOUNDARIES)
    assert (ends - starts == chosen.size).all()


@pytest.mark.parametrize("operator", AGGREGATES, ids=lambda operator: operator.name)
@settings(max_examples=20)
@given(data=st.data())
def test_a_single_instance_gives_what_an_instance_per_window_gives(operator, data):
    single = operator.with_(instances="single")
    rows = data.draw(arrivals(operator, is_sorted=False))
    assert run(single, rows) == run(operator, rows)


def test_many_rows_agree_with_pandas():
    rng = np.random.default_rng(7)
    count = 20_000
    table = pd.DataFrame(
        {
            "item": rng.integers(0, 16, count),
            "price": rng.integers(-2048, 2048, count),
            "time": rng.integers(0, 5_000, count),
        }
    )
    operator = EVERYTHING.with_(size=60, advance=20, having=None)
    got = run_columns(operator, table.time, {"item": table.item, "price": table.price}).to_pandas()
    windows = pd.concat([table.assign(end=table.time // 20 * 20 + 20 + 20 * n) for n in range(3)])
    groups = windows.groupby(["end", "item"], as_index=False).price
    expected = groups.agg(n="count", total="sum", least="min", most="max")
    assert got.window_end.tolist() == expected.end.tolist()
    assert got["item"].tolist() == expected.item.tolist()
    assert got["mean"].tolist() == (2 * expected.total / expected.n).tolist()
    assert got.spread.tolist() == (expected.most.clip(7) - expected.least).tolist()


def test_times_may_lie_anywhere():
    """Codes and panes that do not fit 64 bits together take another way, to the same answer."""
    rows = [
        (time, 0, {"item": item, "price": item})
        for time in (0, 1 << 50, (1 << 62) - 1)
        for item in range(16)
    ]
    operator = EVERYTHING.with_(size=4, advance=1)
    expected = [
        (end, (item,))
        for time in (0, 1 << 50, (1 << 62) - 1)
        for end in range(time + 1, time + 5)
        for item in range(16)
    ]
    assert [(end, key) for end, key, _ in as_rows(operator, run(operator, rows))] == expected


def test_windows_of_many_panes_are_reduced_in_few_calls():
    calls = []
    operator = WindowedOperator(
        name="seen", size=4096, advance=1, fields=[Field("x", 10, False)],
        reductions=[Reduction("seen", "reduce", "x", combine="a | b")],
    )  # fmt: skip
    from host.operators import panes, vectorized

    plain = vectorized.combine_of(operator.reductions[0])
    cells = panes.cells_of(
        np.zeros(5000, np.int64), np.arange(5000), [np.arange(5000) % 1024], [plain]
    )

    def counted(a, b):
        calls.append(len(a))
        return plain(a, b)

    found = cells.windows(4096, 1, [counted])
    assert len(calls) <= 2 * 14
    assert len(found.window) == 5000 + 4095
    assert set(found.states[0][4095:5000]) == {1023}


def test_sums_that_64_bits_cannot_hold_are_exact_or_refused():
    operator = WindowedOperator(
        name="wide", size=10, advance=10, fields=[Field("x", 64)],
        reductions=[Reduction("total", "sum", "x")],
    )  # fmt: skip
    most = (1 << 63) - 1
    got = run_columns(operator, [1, 2, 3, 12], {"x": [most, most, -most, 4]})
    assert got["total"].to_pylist() == [most, 4]
    with pytest.raises(UsageError) as caught:
        run_columns(operator, [1, 2, 13, 14], {"x": [4, 5, most, 1]})
    assert str(caught.value).startswith(f"Reduction 'total' is {most + 1} in window [10, 20), out")


@pytest.mark.parametrize(
    ("times", "columns", "kind", "message"),
    [
        ([1], {}, UsageError, "There is no column 'price' in the left input"),
        ([1], {"price": [2048]}, AcceleratorLimitError, "'price' holds 2048, outside the range"),
        ([-1], {"price": [0]}, AcceleratorLimitError, "Column 'timestamp' holds -1, outside"),
        ([1], {"price": [0.5]}, UsageError, "integers and booleans"),
    ],
)
def test_tuples_that_do_not_fit_are_refused(times, columns, kind, message):
    with pytest.raises(kind) as caught:
        run_columns(KEYLESS, times, columns)
    assert message in str(caught.value)


def test_nothing_gives_nothing():
    for operator in AGGREGATES:
        assert run(operator, []).num_rows == 0
    none = EVERYTHING.with_(keys=[Key("item", when="item > 99")])
    assert run(none, [(1, 0, {"item": 3, "price": 3})]).num_rows == 0


def test_a_mean_of_nothing_is_null():
    operator = KEYLESS.with_(
        reductions=[Reduction("n", "sum", "price > 5"), Reduction("total", "sum", "price")],
        outputs=[Output("mean", "total", per="n"), Output("one", 1)],
    )
    got = run_columns(operator, [0, 7], {"price": [5, 8]})
    assert (got["mean"].to_pylist(), got["one"].to_pylist()) == ([None, 8.0], [1, 1])
