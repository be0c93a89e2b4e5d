# SPDX-License-Identifier: Apache-2.0
"""What a task does with a join aggregate, without Spark: piece by piece, the answer of software."""

import random

import pyarrow as pa
import pytest

from hdl.parameters import JoinParameters, KeyField
from host import CountWindow, TimeWindow, open_device
from host.errors import CapacityError
from host.operators.matches import aggregate_matches
from host.query.queries import Aggregate, Query
from spark_offload.task import join as task_join
from spark_offload.task.join import MatchTask
from tests.host.small_bundles import write_manifest
from tests.spark_offload.device_sources import made_by_task
from tests.spark_offload.tagged_batches import in_batches, tagged_table
from tests.windows import over

SCHEMA = pa.schema([("t", pa.int64()), ("x", pa.int32())])
#: Two cores, which hold 32 right rows together.
PARAMETERS = JoinParameters.of(
    cores=2, sub_window=16, keys=(KeyField(name="x", bits=8),), timestamp_bits=12, lanes=2,
    probes=2, value_bits=8,
)  # fmt: skip
AGGREGATES = {name: Aggregate.of(name) for name in ("count", "sum:x", "max:x")}
OUTPUT = pa.schema([*SCHEMA, ("count", pa.int64()), ("sum:x", pa.int64()), ("max:x", pa.int32())])


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    return f"software:{write_manifest(PARAMETERS, tmp_path_factory.mktemp('bundle'))}"


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(task_join, "BUFFER_ROWS", 40)


def arrivals(*crowd):
    """600 rows in the order of arrival, and some more right rows of one time each."""
    rng = random.Random(56)
    rows = [(at // 2, rng.randrange(2), rng.randrange(50)) for at in range(600)]
    rows += [(time, 1, rng.randrange(50)) for time in crowd]
    return [(side, time, at, x, False) for at, (time, side, x) in enumerate(sorted(rows))]


def of_side(rows, own):
    return pa.Table.from_pylist([{"t": t, "x": x} for side, t, _, x, _ in rows if side == own],
                                SCHEMA)  # fmt: skip


def run(rows, window, uri, **options):
    """The answer of the task as a table, what it reports, and how much of it had come when."""
    query = Query(band=[("x", "x", -9, 9)], time="t", **over(window))
    task = MatchTask(
        query=query, aggregates=AGGREGATES, devices=made_by_task(uri), left=SCHEMA, right=SCHEMA,
        output=OUTPUT,
        width=getattr(window, "lifespan", None), **options,
    )  # fmt: skip
    reports = []
    batches = in_batches(tagged_table(rows), range(0, len(rows), 23))
    found = list(task.function("matches", reports.append)(batches))
    with open_device("software:") as software:
        wanted = aggregate_matches(of_side(rows, 0), of_side(rows, 1), query, AGGREGATES, software)
    answer = pa.Table.from_batches(found, OUTPUT)
    assert answer.to_pylist() == wanted.to_pylist()
    return reports[0], found


@pytest.mark.parametrize("window", [TimeWindow(5), CountWindow(7)])
def test_pieces_give_the_answer_of_the_whole(device, small_pieces, window):
    rows = arrivals()
    report, found = run(rows, window, device)
    assert len(found) > 4  # they grow
    assert report.left_rows == report.results == sum(side == 0 for side, *_ in rows)
    assert report.right_rows == len(rows) - report.left_rows
    assert report.counters["results"] == report.counters["tuples_r"] >= report.left_rows
    assert report.software_rows == 0
    assert report.handed_over == ""


def test_only_the_pieces_that_are_refused_go_to_software(device, small_pieces):
    rows = arrivals(*[150] * 40)
    report, _ = run(rows, TimeWindow(5), device, software="software:")
    assert 40 < report.software_rows < len(rows) // 2
    assert "outgrew the capacity of 32 tuples" in report.handed_over
    assert report.counters["tuples_r"] > 200
    with pytest.raises(CapacityError, match="outgrew the capacity of 32 tuples"):
        run(rows, TimeWindow(5), device)


def test_an_empty_partition_is_reported_too(device):
    report, found = run([], TimeWindow(5), device)
    assert found == []
    assert report.results == report.left_rows == 0
