# SPDX-License-Identifier: Apache-2.0
"""Tasks whose accelerator loses a core."""

from pyspark.errors import PySparkException
import pytest

from host import UsageError
from spark_offload import metrics, stream_join, task_error
from tests.host.failing_device import gated
from tests.host.small_bundles import write_manifest


@pytest.fixture
def join(spark, tmp_path):
    """Return a function that joins rows by a policy, on a device whose core 2 fails."""
    bundle = write_manifest(gated(), tmp_path / "bundle")
    rows = spark.createDataFrame([(n, n * n % 11) for n in range(200)], "t int, x int")

    def joined(policy, device=f"tests.host.failing_device:{bundle},150,2"):
        return stream_join(
            rows, rows, on="x", time="t", rows=40, device=device, partitions=1, on_failure=policy
        )

    return joined


def test_after_a_replay_nothing_is_missing_and_the_metrics_tell(join):
    expected = join("raise", "software:").collect()
    joined = join("replay")
    assert joined.collect() == expected
    assert "failed cores: 2" in metrics(joined).remarks()[-1]
    assert "nothing is missing" in metrics(joined).remarks()[-1]


def test_a_report_lists_what_is_missing(join):
    expected = join("raise", "software:").collect()
    joined = join("report")
    found = joined.collect()
    assert set(found) < set(expected)
    assert "stored by core 2" in metrics(joined).remarks()[-1]


def test_otherwise_the_task_fails_and_names_the_core(join):
    with pytest.raises(PySparkException) as caught:
        join("raise").collect()
    assert "Core 2 of device" in str(task_error(caught.value))


def test_an_unknown_policy_is_refused(join):
    with pytest.raises(UsageError, match="must be one of 'raise', 'report', 'replay', not 'x'"):
        join("x")
