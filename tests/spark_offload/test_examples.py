# SPDX-License-Identifier: Apache-2.0
"""The examples for data engineers, and the notebook, answer what Spark alone answers."""

import json

import pytest

from examples.spark import flights, sensors, trades_and_quotes
from spark_offload import explain, verify

DEVICE = "software:"


def test_quotes_that_explain_trades_are_those_that_spark_finds(spark):
    trades, quotes = trades_and_quotes.trades(spark, 400), trades_and_quotes.quotes(spark, 800)
    checked = verify(trades_and_quotes.explained(trades, quotes, DEVICE))
    assert checked.rows > 400
    slippage = trades_and_quotes.slippage(trades, quotes).collect()
    assert len(slippage) == trades_and_quotes.SYMBOLS
    assert sum(row.trades for row in slippage) > 390  # the first trades have no quote before them


def test_connections_are_those_that_spark_finds_and_some_are_missed(spark):
    found = flights.connections(flights.flights(spark, 300), DEVICE)
    assert verify(found).rows > 500
    for row in flights.missed(found).collect():
        assert 0 < row.missed < row.offered / 2


def alarms_of_a_batch(spark):
    """Return the alarms of the whole readings."""
    hot = sensors.readings(spark, sensors.TEMPERATURE, 5)
    shaking = sensors.readings(spark, sensors.VIBRATION, 7)
    return sensors.alarms(hot, shaking, DEVICE)


def test_alarms_without_a_repair_are_those_that_spark_finds(spark):
    alarms = alarms_of_a_batch(spark).cache()
    unexplained = sensors.unexplained(alarms, sensors.repairs(spark), DEVICE)
    assert 0 < verify(unexplained).rows < alarms.count()


@pytest.mark.long
def test_alarms_of_two_streams_are_those_of_a_batch(spark, tmp_path):
    streamed = sensors.run(spark, tmp_path, DEVICE)
    assert sorted(streamed.collect()) == sorted(alarms_of_a_batch(spark).collect())


def run_notebook(root, device):
    """Run the cells of the notebook, on ``device``; return the names that they have bound."""
    cells = json.loads((root / "examples" / "spark" / "tour.ipynb").read_text())["cells"]
    names = {}
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            assert not cell["outputs"]
            exec(compile(source, cell["id"], "exec"), names)
            names["device"] = device
    return names


@pytest.mark.long
def test_the_cells_of_the_notebook_run(spark, root, capsys):
    names = run_notebook(root, DEVICE)
    printed = capsys.readouterr().out
    assert "agree with Spark's own join" in printed
    assert "software:" in printed
    assert verify(names["volumes"]).rows > 50


@pytest.mark.long
def test_the_notebook_runs_on_the_simulated_accelerator(spark, root):
    assert explain(run_notebook(root, "sim:")["pairs"]).device.startswith("sim:")
