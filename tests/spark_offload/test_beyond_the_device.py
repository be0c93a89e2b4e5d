# SPDX-License-Identifier: Apache-2.0
"""Times, values and windows that a device cannot hold: software goes on, visibly and exactly."""

from collections import Counter
import logging

from pyspark.errors import PySparkException
import pytest

from hdl.parameters import JoinParameters, KeyField
from host.devices.software import SOFTWARE_MANIFEST
from host.errors import AcceleratorLimitError
from host.protocol.manifest import Manifest
from spark_offload import (
    explain,
    join_aggregate,
    metrics,
    overlap_join,
    stream_join,
    task_error,
    verify,
)
from spark_offload.verification.comparison import all_of_stream
from tests.host.small_bundles import write_manifest
from tests.spark_offload.stream_folders import rows_of


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    """The address of a device whose timestamps reach 18 minutes, with two fields of 4 bits."""
    values = Manifest.load(SOFTWARE_MANIFEST).values["parameters"]
    keys = tuple(KeyField(name=name, bits=4) for name in "xy")
    parameters = JoinParameters.from_dict(values).with_(timestamp_bits=30, keys=keys)
    return f"software:{write_manifest(parameters, tmp_path_factory.mktemp('short') / 'bundle')}"


#: One row a year and, beside each, one some minutes later.
YEARS = """select timestamp_seconds(86400 * 365 * (id div 2) + 400 * (id % 2)) as t, id as k,
    cast(id % 3 as string) as s from range(32)"""

ORDERS = {
    "timestamps": ("t", "10 minutes"),
    "timestamps without a zone": ("cast(t as timestamp_ntz) as t", "10 minutes"),
    "intervals": ("t - timestamp'1960-01-01 00:00:00' as t", "10 minutes"),
    "whole numbers": ("unix_micros(t) as t", 600_000_000),
}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "order",
    [
        pytest.param(order, marks=pytest.mark.long if order.endswith("zone") else ())
        for order in ORDERS
    ],
)
def test_a_task_goes_on_in_software_from_the_first_time_that_is_too_late(spark, device, order):
    time, within = ORDERS[order]
    frame = spark.sql(YEARS).selectExpr(time, "k", "s").coalesce(1)
    for options in ({}, {"on": "s", "how": "full"}):
        pairs = stream_join(frame, frame, time="t", within=within, device=device, **options)
        assert "goes on in software" in explain(pairs).window
        assert verify(pairs).agrees
        assert pairs.count() >= 32
        assert "behind the first one and the device's timestamps have 30 bits" in str(
            metrics(pairs)
        )


def test_the_log_says_it_once(spark, device, caplog):
    frame = spark.sql(YEARS)
    pairs = stream_join(frame, frame, on="s", time="t", within="10min", device=device, partitions=2)
    with caplog.at_level(logging.WARNING, "spark_offload"):
        pairs.count()
    (said,) = [record.getMessage() for record in caplog.records]
    assert "went on in software from row" in said


def test_strict_makes_it_an_error_that_names_the_column(spark, device):
    frame = spark.sql(YEARS)
    pairs = stream_join(frame, frame, time="t", within="10min", device=device, strict=True)
    with pytest.raises(PySparkException) as failed:
        pairs.count()
    error = task_error(failed.value)
    assert isinstance(error, AcceleratorLimitError)
    assert "'left.t' holds" in str(error)
    assert "bits of timestamp" in str(error)


@pytest.mark.few(1)
@pytest.mark.parametrize("terms", [{"on": "s"}, {"on": ["s", "k"]}, {"band": {("k", "k"): (0, 1)}}])
def test_values_that_the_fields_do_not_hold(spark, device, terms):
    frame = spark.sql(YEARS).selectExpr("t", "k * 1000000007 div 2 as k", "uuid() as s").cache()
    pairs = stream_join(frame, frame, time="t", within="1000 days", device=device, **terms)
    assert verify(pairs).agrees
    assert pairs.count() >= 32


@pytest.mark.long
def test_aggregates_of_matches_and_overlaps(spark, device):
    frame = spark.sql(YEARS)
    found = join_aggregate(
        frame, frame, on="s", time="t", within="10min", device=device,
        aggregates={"n": "count", "last": ("max", "k")},
    )  # fmt: skip
    assert verify(found).agrees
    spans = frame.selectExpr("t as start", "t + interval 7 minutes as end", "k")
    overlaps = overlap_join(spans, spans, left_interval=("start", "end"), device=device)
    assert verify(overlaps).agrees
    assert overlaps.count() == 64
    assert "in software" in str(metrics(overlaps))


@pytest.mark.long
@pytest.mark.parametrize("on", [pytest.param("s", marks=pytest.mark.long), "k"])
def test_streams(spark, device, tmp_path, on):
    frame = spark.sql(YEARS).selectExpr("t", "k div 2 * 1000000007 as k", "s")
    frame.coalesce(1).write.parquet(str(tmp_path / "rows"))
    batch = spark.read.parquet(str(tmp_path / "rows"))
    stream = spark.readStream.schema(batch.schema).parquet(str(tmp_path / "rows"))
    stream = stream.withWatermark("t", "1 minute")
    asked = {"on": on, "time": "t", "within": "10min", "device": device, "partitions": 1}
    joined = stream_join(stream, stream, **asked)
    assert "software joins" in explain(joined).window
    with all_of_stream(joined) as streamed:
        assert rows_of(streamed) == rows_of(stream_join(batch, batch, **asked))


@pytest.mark.long
def test_the_default_device_joins_times_of_a_lifetime(spark):
    frame = spark.range(16).selectExpr(
        "make_timestamp(cast(2008 + id as int), 1, 1, 0, 0, 0) as at", "id as k"
    )
    pairs = stream_join(frame, frame, on="k", time="at", within="1d", partitions=1, device="sim:")
    assert Counter(row.k for row in pairs.collect()) == Counter(range(16))
