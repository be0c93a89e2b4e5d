# SPDX-License-Identifier: Apache-2.0
"""The programs of pages that presume rows of one's own run, once there are such rows."""

from datetime import datetime, timedelta
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.host.small_bundles import BUNDLES, write_manifest

BEGIN = datetime(2026, 1, 2, 12)
ROWS = 40


def programs(root, name):
    """Return the Python programs of a page."""
    page = (root / "docs" / f"{name}.md").read_text("utf-8")
    return re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def run(program, names):
    """Run a program of a page among names; return these, with those that it has bound."""
    exec(compile(program, "page", "exec"), names)
    return names


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Two tables of trades and quotes, also as files in the current folder."""
    monkeypatch.chdir(tmp_path)
    found = {}
    for name, later in (("trades", 0), ("quotes", 1)):
        at = [BEGIN + timedelta(seconds=n + later) for n in range(ROWS)]
        columns = {"time": at, "at": at, "symbol": ["A", "B"] * (ROWS // 2)}
        prices = [100 + n % 7 for n in range(ROWS)]
        found[name] = pa.table({**columns, "price": prices, "bid": prices})
        (tmp_path / name).mkdir()
        pq.write_table(found[name], f"{name}.parquet")
        pq.write_table(found[name], f"{name}/part.parquet")
    return found


@pytest.fixture
def frames(spark, tables, tmp_path):
    """The same as frames of Spark."""
    return {name: spark.read.parquet(str(tmp_path / f"{name}.parquet")) for name in tables}


def test_functions_for_tables_take_what_the_page_gives_them(root, tables):
    (program,) = programs(root, "installing")
    answers = run(program, dict(tables))
    assert answers["pairs"].num_rows > answers["priced"].num_rows == ROWS
    assert sum(answers["hourly"]["n"].to_pylist()) == ROWS


def test_the_cost_of_a_manifest_is_a_number_of_cycles(root, tables, tmp_path):
    (tmp_path / "build" / "bundles").mkdir(parents=True)
    write_manifest(BUNDLES["groups"].with_(sub_window=4_096), tmp_path / "build/bundles/mine")
    (program,) = programs(root, "cost-model")
    *_, last = program.rstrip().splitlines()
    names = run(f"{program}\nanswer = {last}", {})
    assert names["answer"] > 0


def test_as_of_joins_of_the_page_find_a_quote_for_each_trade(root, tables, frames):
    of_spark, of_tables = programs(root, "asof")
    quotes = frames["quotes"].drop("time")
    priced = run(of_spark, {**frames, "quotes": quotes})["priced"]
    assert priced.count() == ROWS
    on_the_host = of_tables.partition("\nwith open_device")[0]
    assert run(on_the_host, dict(tables))["result"].num_rows == ROWS


def test_aggregates_of_the_page_count_every_row(root, tables, frames):
    batch, _, _, matches, in_pipeline, described = programs(root, "aggregates")
    assert run(batch, dict(frames))["prices"].count() > 0
    assert run(matches, dict(frames))["near"].count() == ROWS
    assert run(in_pipeline, dict(tables))["result"].num_rows > 0
    assert run(described, {})["trades"].size == 12


def test_a_board_is_joined_as_any_device(root, spark, capsys):
    program = programs(root, "guide-board")[0]
    with_a_board, found = re.subn(r'^board = ".*"$', 'board = "software:"', program, flags=re.M)
    assert found == 1
    run(with_a_board, {})
    assert "103" in capsys.readouterr().out


def test_the_streaming_join_of_the_page_runs(root, spark, tables, tmp_path, capsys):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    starting, watching = programs(root, "spark-streaming")
    # Java has a current folder of its own.
    starting = re.sub(r'"(trades|quotes|pairs[a-z-]*)"', rf'"{tmp_path}/\1"', starting)
    try:
        names = run(starting, {})
        names["query"].processAllAvailable()
        names["query"].stop()
        run(watching, names)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    assert spark.read.parquet(str(tmp_path / "pairs")).count() > ROWS // 2
    assert capsys.readouterr().out
