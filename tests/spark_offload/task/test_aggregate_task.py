# SPDX-License-Identifier: Apache-2.0
"""What tasks of aggregations do, without Spark: with a device, the answer is that of the host."""

import pyarrow as pa
import pytest

from host.errors import AcceleratorLimitError, OrderError
from host.operators import aggregate
from host.operators.aggregate import WindowAggregation
from host.operators.states import Phases
from host.query.queries import AggregateQuery
from spark_offload.task.operators import AggregateTask
from tests.host.operators.small_aggregate import ModelDevice

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int32())])
QUERY = AggregateQuery(
    time="t", window=6, advance=3, on=["k"], aggregates={"n": "count", "v": "mean:v"}
)
ROWS = [
    {"t": 3 * n // 2, "k": "ab"[n % 2] if n % 7 else None, "v": n % 5 if n % 3 else None}
    for n in range(60)
]


class Opened(ModelDevice):
    """Counts how often a device was opened and closed."""

    open = 0

    def __init__(self, uri):
        super().__init__()
        Opened.open += 1

    def close(self):
        Opened.open -= 1


@pytest.fixture
def device(monkeypatch):
    monkeypatch.setattr(aggregate, "open_aggregate", Opened)
    Opened.open = 0
    yield "sim:small"
    assert Opened.open == 0


def batches(rows, size=11):
    for at in range(0, len(rows), size):
        yield pa.RecordBatch.from_pylist(rows[at : at + size], SCHEMA)


def run(task, rows):
    reports = []
    found = list(task.function("name", reports.append)(batches(rows)))
    return [row for batch in found for row in batch.to_pylist()], reports, found


def expected():
    work = WindowAggregation(SCHEMA, QUERY)
    work.more_rows(pa.RecordBatch.from_pylist(ROWS, SCHEMA))
    return work.schema, work.last_rows().to_pylist()


def test_a_device_keeps_the_windows_and_results_leave_as_they_end(device):
    schema, rows = expected()
    task = AggregateTask(
        query=QUERY,
        input=SCHEMA,
        output=schema,
        in_order=True,
        device=device,
        device_name="sim:given",
        ends=True,
    )
    got, (report,), found = run(task, ROWS)
    assert got == rows
    assert sum(batch.num_rows > 0 for batch in found) > 3
    assert (report.device, report.left_rows, report.results) == ("sim:given", 60, len(rows))
    assert report.cycles > 0


def test_both_phases_on_the_host_have_the_same_answer():
    schema, rows = expected()
    phases = Phases(QUERY)
    panes = WindowAggregation(SCHEMA, phases.panes).schema
    parts = []
    for half in (ROWS[:25], ROWS[25:]):
        got, (report,), _ = run(AggregateTask(query=phases.panes, input=SCHEMA, output=panes), half)
        assert (report.left_rows, report.results, report.device) == (len(half), 0, "")
        parts += got
    whole = AggregateTask(query=phases.windows, input=panes, output=schema, whole=phases, ends=True)
    reports = []
    function = whole.function("name", reports.append)
    found = list(function(iter([pa.RecordBatch.from_pylist(parts, panes)])))
    assert [row for batch in found for row in batch.to_pylist()] == rows
    assert (reports[0].left_rows, reports[0].results) == (0, len(rows))


def test_more_keys_than_there_is_room_for_are_an_error_that_names_the_partition(device):
    schema, _ = expected()
    task = AggregateTask(query=QUERY, input=SCHEMA, output=schema, in_order=True, device=device)
    rows = [{"t": n, "k": str(n), "v": 1} for n in range(20)]
    with pytest.raises(AcceleratorLimitError, match=r"room for 13.*\(In Spark partition 0\.\)"):
        run(task, rows)


def test_the_host_goes_on_where_there_is_no_room_and_the_report_says_why(device):
    rows = [{"t": n, "k": str(n % 7 if n < 30 else n), "v": n} for n in range(60)]
    work = WindowAggregation(SCHEMA, QUERY)
    work.more_rows(pa.RecordBatch.from_pylist(rows, SCHEMA))
    task = AggregateTask(
        query=QUERY,
        input=SCHEMA,
        output=work.schema,
        in_order=True,
        device=device,
        ends=True,
        goes_on=True,
    )
    got, (report,), _ = run(task, rows)
    assert got == work.last_rows().to_pylist()
    assert "on the host: The input has at least 21 distinct keys" in report.handed_over
    assert report.results == len(got)


def test_rows_that_are_not_in_order_are_an_error(device):
    schema, _ = expected()
    task = AggregateTask(query=QUERY, input=SCHEMA, output=schema, in_order=True, device=device)
    with pytest.raises(OrderError):
        run(task, ROWS[::-1])
