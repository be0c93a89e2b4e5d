# SPDX-License-Identifier: Apache-2.0
"""The functions for programs take the rows of any library, and answer in Arrow."""

from importlib import import_module

from hypothesis import example, given
from hypothesis import strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import host
from host import UsageError, aggregate, asof_join, join, join_aggregate, overlap_join
from host.query.queries import AsofQuery, Query

LEFT = pa.table({"t": [1, 5, 9], "k": ["a", "b", "a"]})
RIGHT = pa.table({"t": [2, 6, 7], "k": ["a", "b", "b"], "x": [10, 20, 30]})
ASKED = {"time": "t", "on": "k", "within": 2}
PAIRS = [(1, 2), (5, 6), (5, 7)]


class Foreign:
    """Rows of a library that the kit does not know."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def polars(table):
    return pytest.importorskip("polars", reason="needs make setup-fpga").from_arrow(table)


def duckdb(table):
    library = pytest.importorskip("duckdb", reason="needs make setup-fpga")
    return library.connect().from_arrow(table)


FORMS = {
    "table": lambda table: table,
    "reader": lambda table: table.to_reader(),
    "batch": lambda table: table.combine_chunks().to_batches()[0],
    "batches": lambda table: table.to_batches(1),
    "an iterator": lambda table: iter(table.to_batches(2)),
    "any library": Foreign,
    "pandas": lambda table: table.to_pandas(),
    "polars": polars,
    "duckdb": duckdb,
}


def pairs(result):
    return sorted(zip(result["t"].to_pylist(), result["t_right"].to_pylist(), strict=True))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_sorted", [False, True])
def test_rows_of_every_library_are_joined(form, is_sorted):
    left, right = FORMS[form](LEFT), FORMS[form](RIGHT)
    assert pairs(join(left, right, sorted=is_sorted, **ASKED)) == PAIRS


def test_two_relations_of_one_connection_are_read_one_after_the_other():
    connection = pytest.importorskip("duckdb", reason="needs make setup-fpga").connect()
    sides = (connection.from_arrow(table) for table in (LEFT, RIGHT))
    assert pairs(join(*sides, **ASKED)) == PAIRS


@pytest.mark.parametrize("form", FORMS)
def test_every_function_takes_them(form):
    def made(table):
        return FORMS[form](table)

    found = asof_join(made(RIGHT), made(LEFT), time="t", on="k")
    assert pairs(found) == [(2, 1), (6, 5), (7, 5)]
    counted = aggregate(made(RIGHT), time="t", window=5, on="k", aggregates={"n": "count"})
    assert counted["n"].to_pylist() == [1, 2]
    totals = join_aggregate(made(LEFT), made(RIGHT), aggregates={"s": "sum:x"}, **ASKED)
    assert totals["s"].to_pylist() == [10, 50, None]
    over = overlap_join(made(LEFT), made(RIGHT), left_interval=("t", "t"), on="k", how="left")
    assert pairs(over.filter(over["t_right"].is_valid())) == []


def test_names_of_files_are_read(tmp_path):
    for name, table in (("left", LEFT), ("right", RIGHT)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    place = str(tmp_path / "left.parquet")
    assert pairs(join(place, tmp_path / "right.parquet", **ASKED)) == PAIRS
    with pytest.raises(UsageError, match="nothing.parquet"):
        join(place, "nothing.parquet", **ASKED)


def test_a_query_stands_for_its_words():
    query = Query(**ASKED)
    assert join(LEFT, RIGHT, query).equals(join(LEFT, RIGHT, **ASKED))
    with pytest.raises(UsageError, match="A query is given, and so is within"):
        join(LEFT, RIGHT, query, within=3)
    with pytest.raises(UsageError, match="The third argument is a Query, not AsofQuery"):
        join(LEFT, RIGHT, AsofQuery(time="t"))
    with pytest.raises(UsageError, match="order is called time here"):
        join(LEFT, RIGHT, order="t", within=3)


def test_a_reader_comes_with_the_same_rows():
    for table, reader in (
        (join(LEFT, RIGHT, **ASKED), join(LEFT, RIGHT, reader=True, **ASKED)),
        (asof_join(LEFT, RIGHT, time="t"), asof_join(LEFT, RIGHT, time="t", reader=True)),
    ):
        assert isinstance(reader, pa.RecordBatchReader)
        assert reader.read_all().equals(table)


def test_a_device_is_given_open_or_by_its_address():
    with host.open_device("software:") as device:
        for given in (device, "software:"):
            assert pairs(join(LEFT, RIGHT, device=given, **ASKED)) == PAIRS
            assert pairs(asof_join(RIGHT, LEFT, time="t", on="k", device=given)) != []


def test_the_environment_names_the_device_of_who_names_none(monkeypatch, tmp_path):
    monkeypatch.setenv("SPLITJOIN_DEVICE", f"sim:{tmp_path}/none")
    assert pairs(join(LEFT, RIGHT, device="software:", **ASKED)) == PAIRS
    with pytest.raises(host.UsageError, match="none"):
        join(LEFT, RIGHT, **ASKED)


@pytest.mark.parametrize("rows", [{"t": [1]}, 7, None])
def test_what_holds_no_rows_is_named(rows):
    with pytest.raises(UsageError, match=f"The left rows are a {type(rows).__name__}; give a"):
        join(rows, RIGHT, **ASKED)


@given(
    function=st.sampled_from([join, asof_join, join_aggregate, aggregate]),
    before=st.integers(0, 2), odd=st.sampled_from([None, 1, {"t": 1}, [1], LEFT, "t.csv"]),
    is_sorted=st.booleans(), form=st.sampled_from([list, tuple, iter]),
)  # fmt: skip
@example(join, 0, ..., False, list)
@example(aggregate, 0, ..., False, iter)
@example(asof_join, 0, ..., True, iter)
def test_what_is_no_batch_is_named(function, before, odd, is_sorted, form):
    """Ellipsis stands for no batch at all."""
    rows = LEFT.to_batches()[0]
    batches = [*(rows.slice(n, 1) for n in range(before)), *([] if odd is ... else [odd])]
    one = {"window": 2} if function is aggregate else {"within": 2}
    counted = {"aggregates": {"n": "count"}} if function in (aggregate, join_aggregate) else {}
    inputs = [form(batches)] if function is aggregate else [form(batches), RIGHT]
    words = {} if function is join_aggregate else {"sorted": is_sorted}
    with pytest.raises(UsageError, match=r"An input (of|without any) batch"):
        function(*inputs, time="t", on="k", **one, **counted, **words)


@pytest.mark.parametrize(
    ("package", "source"), [("splitjoin", "host"), ("splitjoin.spark", "spark_offload")]
)
def test_the_name_of_the_kit_has_the_same_functions(package, source):
    package, source = import_module(package), import_module(source)
    for name in package.__all__:
        assert getattr(package, name) is getattr(source, name)
    if package.__name__ == "splitjoin.spark":
        assert set(package.__all__) == set(source.__all__)
    assert not hasattr(package, "nothing")
