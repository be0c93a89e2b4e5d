# SPDX-License-Identifier: Apache-2.0
"""Elastic joins in Spark's tasks."""

import pytest

from host import PredictiveController, UsageError
from spark_offload import metrics, stream_join
from tests.host.failing_device import gated
from tests.host.small_bundles import write_manifest


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
    with pytest.raises(UsageError, match="elastic is not for streams.* leave it out"):
        stream_join(stream, stream, within="1min", elastic=True, **how)
