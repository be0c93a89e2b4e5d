# SPDX-License-Identifier: Apache-2.0
"""The benchmark of streaming joins runs, and measures what it says."""

from datetime import timedelta
import json

import pyarrow.parquet as pq
import pytest

from bench.spark.__main__ import main
from bench.spark.streams import CASES, TICK, StreamBenchmark, sustained_rate
from host import FailureError
from host.query.quantities import as_duration, parse_duration
from spark_offload.measures import MicroBatch


def test_rows_come_out_of_order_but_never_late(tmp_path):
    benchmark = StreamBenchmark(rows=4000, batches=3, window=100)
    benchmark.write(tmp_path)
    delay = parse_duration(benchmark.delay)
    for side in ("left", "right"):
        latest, disorder = None, 0
        for number in range(3):
            times = pq.read_table(tmp_path / side / f"{number:04}.parquet")["t"].to_pylist()
            assert len(times) == 2000
            for time in times:
                if latest is not None and time < latest:
                    disorder += 1
                    assert as_duration(latest - time) <= delay
                latest = time if latest is None else max(latest, time)
        assert disorder > 100
    assert parse_duration(benchmark.within) == as_duration(timedelta(microseconds=100 * TICK))


def test_the_large_state_is_full_before_it_is_measured():
    small, large = CASES["small"], CASES["large"]
    assert 2 * small.window < small.rows
    assert 2 * large.window == 10 * large.rows
    for case in (small, large):
        assert case.warm_up * case.rows > 2 * case.window
        assert case.batches >= case.warm_up + 8
    # As many rows of a window have a key as there are values for six.
    assert (small.values, large.values) == (30_000, 300_000)


def micro_batch(rows, seconds):
    return MicroBatch(0, "splitjoin", "", seconds, rows, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0)


def test_the_rate_leaves_the_first_micro_batches_and_empty_ones_out():
    batches = [micro_batch(*pair) for pair in ((9, 9), (9, 9), (100, 2), (0, 5), (50, 1))]
    assert sustained_rate(batches, skip=2) == 50
    with pytest.raises(FailureError, match="--batches"):
        sustained_rate(batches[:2], skip=2)


def test_a_number_that_cannot_be_is_named(capsys):
    assert main(["streams", "--keys", "0"]) == 2
    assert "--keys must be at least 1, not 0" in capsys.readouterr().err
    assert main(["streams", "--batches", "3", "--warm-up", "3"]) == 2
    assert "less than the 3 micro-batches" in capsys.readouterr().err
    assert main(["streams", "--batches", "3"]) == 2
    assert "not 4" in capsys.readouterr().err


@pytest.mark.long
def test_eight_queries_of_one_session_run_at_once(spark, tmp_path):
    pytest.importorskip("google.protobuf", reason="Spark's state store is spoken to by protobuf")
    case = StreamBenchmark(rows=2000, batches=2, window=1000)
    batches = case.run(spark, device="software:", groups=2, queries=8)
    assert sum(batch.rows for batch in batches) == 4000


@pytest.mark.long
def test_the_command_prints_every_micro_batch_and_the_rate(spark, tmp_path, capsys):
    pytest.importorskip("google.protobuf", reason="Spark's state store is spoken to by protobuf")
    arguments = ["--rows", "2000", "--batches", "3", "--window", "1000", "--groups", "2"]
    path = tmp_path / "bench" / "stream.json"
    command = ["streams", *arguments, "--warm-up", "1", "--floors", "--output", str(path)]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("groups") for line in lines)
    assert sum(line.split()[1:2] == ["2,000"] for line in lines) == 3
    figures = json.loads(path.read_text())
    for figure, line, name in zip(
        figures, lines[-3:], ("state", "reading", "nothing"), strict=True
    ):
        assert line.startswith(f"spark.stream.rows_per_s_chosen_{name}")
        assert f"{figure['value']:,.0f}  rows/s" in line
    figure = figures[0]
    assert figure["micro_batch_rows"] == 2000
    assert 2000 <= figure["state_rows"] <= 6000
