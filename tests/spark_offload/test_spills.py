# SPDX-License-Identifier: Apache-2.0
"""The metrics of a task say what Spark has spilled for it."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import json
from spark_offload import metrics, open_session, stream_join

# A setting of a whole process: Spark spills when a task has sorted so many rows.
most = {"spark.shuffle.spill.numElementsForceSpillThreshold": "1000"}
spark = open_session("spills", master="local[2]", options=most)
for count in (100, 20_000):
    rows = spark.range(count).selectExpr("id * 7919 % 20000 as t", "cast(id % 10 as int) as k")
    joined = stream_join(rows, rows, time="t", on="k", within=5, device="software:", partitions=2)
    assert joined.count() >= count
    found = metrics(joined)
    print(json.dumps([[task.spilled_bytes for task in found.tasks], found.remarks()]))
"""


@pytest.mark.long
def test_metrics_tell_what_spark_spilled_while_it_sorted():
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    few, many = map(json.loads, told.stdout.splitlines())
    assert few == [[0, 0], []]
    spilled, remarks = many
    assert min(spilled) > 10_000 * 8
    assert remarks == [
        f"partition {at}: Spark spilled {size:,} bytes to disk while it sorted the rows"
        for at, size in enumerate(spilled)
    ]
