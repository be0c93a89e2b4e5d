# SPDX-License-Identifier: Apache-2.0
"""The numbers of a micro-batch are read from Spark's progress, whichever way Spark gives them."""

from types import SimpleNamespace

from pyspark.sql import Row
import pytest

from spark_offload.measures import NUMBERS, read_progress

NAMES = [*NUMBERS]
VALUES = [50, 40, 3, 2, 232, 100, 7, 9000, 4.5, 0.25, 60, 80, 1.25]

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
