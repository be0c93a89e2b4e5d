# SPDX-License-Identifier: Apache-2.0
"""The numbers of a micro-batch are read from Spark's progress, whichever way Spark gives them."""

from types import SimpleNamespace

from pyspark.sql import Row
import pytest

from host.query.cores import Observation
from spark_offload.cluster.pools import PoolDecision
from spark_offload.stream.metrics import DECISIONS, read_progress
from spark_offload.stream.processor import NUMBERS

POOL = (
    PoolDecision("one", 4, 3, 2, Observation(cores=1, least=1, cycles=9, busy=18, latency=5)),
    PoolDecision("two", 4, 3, 1, None),
)

NAMES = [*NUMBERS, DECISIONS]
VALUES = [50, 40, 3, 2, 232, 100, 7, 60, 80, 9000, 4.5, 0.25, 1.25, "\n".join(p.text for p in POOL)]

# Of a session with a context, and of Spark Connect.
ROWS = [
    Row(*NAMES)(*VALUES),
    Row("values", "schema")(VALUES, {"type": "struct", "fields": [{"name": n} for n in NAMES]}),
]


@pytest.mark.parametrize("row", ROWS, ids=["context", "connect"])
def test_the_numbers_of_a_micro_batch_are_found_by_name(row):
    progress = SimpleNamespace(
        observedMetrics={"splitjoin-2": row, "mine": Row("rows")(5)},
        batchId=4,
        eventTime={"watermark": "2020-01-01T00:00:48.000Z"},
        durationMs={"triggerExecution": 1500},
    )
    (batch,) = read_progress(progress)
    assert (batch.batch, batch.join, batch.trigger_seconds) == (4, "splitjoin-2", 1.5)
    assert batch.rows == 90
    assert batch.late_rows == 5
    assert (batch.results, batch.stored, batch.expired, batch.cycles) == (232, 100, 7, 9000)
    assert (batch.software_rows, batch.read_rows) == (60, 80)
    assert (batch.seconds, batch.device_seconds, batch.waited_seconds) == (4.5, 0.25, 1.25)
    assert batch.decisions == POOL
    assert batch.active_devices == 2


def test_a_pool_that_is_not_elastic_has_no_decisions():
    row = Row(*NAMES)(*VALUES[:-1], "")
    progress = SimpleNamespace(
        observedMetrics={"splitjoin-2": row}, batchId=4, eventTime={}, durationMs={}
    )
    (batch,) = read_progress(progress)
    assert batch.decisions == ()
    assert batch.active_devices is None
