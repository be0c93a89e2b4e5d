# SPDX-License-Identifier: Apache-2.0
"""Elastic joins in Spark's tasks."""

import random

import pytest

from host import PredictiveController, ThresholdController, UsageError
from host.query.cores import CoreControl
from spark_offload import explain, metrics, stream_join, stream_metrics
from tests.host.failing_device import gated
from tests.host.small_bundles import write_manifest
from tests.spark_offload.device_sources import software_devices
from tests.spark_offload.stream_folders import random_batch, rows_of


@pytest.fixture
def device(tmp_path):
    return f"software:{write_manifest(gated(), tmp_path / 'bundle')}"


def test_a_task_has_a_controller_and_tells_what_it_decided(spark, device):
    rows = spark.createDataFrame([(n, n * n % 11) for n in range(200)], "t int, x int")
    how = {"on": "x", "time": "t", "rows": 20, "device": device, "partitions": 1}
    expected = stream_join(rows, rows, **how).collect()
    joined = stream_join(rows, rows, elastic=PredictiveController(interval=64), **how)
    assert joined.collect() == expected
    assert any("elastic: predictive 80/75/70 %" in note for note in metrics(joined).remarks())
    (task,) = metrics(joined).tasks
    assert task.elastic.cores == gated().cores


def test_what_cannot_be_elastic_is_refused(spark, device):
    rows = spark.createDataFrame([(1, 1)], "t int, x int")
    how = {"on": "x", "time": "t", "device": device}
    with pytest.raises(UsageError, match="is True, a ThresholdController"):
        stream_join(rows, rows, rows=20, elastic="quick", **how)
    stream = spark.readStream.format("rate").load().selectExpr("timestamp as t", "value as x")
    stream = stream.withWatermark("t", "1 second")
    with pytest.raises(
        UsageError, match=r"device is 'software:.*', not a pool; give a list of two"
    ):
        stream_join(stream, stream, within="1min", elastic=True, **how)


def test_a_query_uses_fewer_devices_of_its_pool_when_there_is_little_to_do(folders, tmp_path):
    pool = software_devices(tmp_path, 3)
    rng = random.Random(7)
    for number in range(3):
        folders.drop(random_batch(rng, number), random_batch(rng, number))
    asked = {"on": "k", "time": "t", "within": "5s", "partitions": 2}
    # Devices are idle while Spark plans, and two tasks keep two of three busy at most.
    elastic = ThresholdController(upper=0.99, target=0.98, lower=0.67)
    joined = folders.join(**asked, device=pool, elastic=elastic)
    assert "elastic, threshold 99/98/67 %: the load decides" in explain(joined).chosen
    query = folders.run(joined)
    assert rows_of(folders.answer()) == rows_of(folders.oracle(**asked))
    batches = [batch for batch in stream_metrics(query) if batch.rows]
    assert [batch.active_devices for batch in batches[:2]] == [3, 3]
    assert batches[2].active_devices < 3
    control = CoreControl(elastic, 3)
    for batch in batches[1:]:
        (decision,) = batch.decisions
        assert decision.seen.tuples == batches[batch.batch - 1].rows
        assert control.see(decision.seen) == decision.active
