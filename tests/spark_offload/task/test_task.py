# SPDX-License-Identifier: Apache-2.0
"""What a task does with its partition, without Spark: the rows pass through."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from host import CountWindow, TimeWindow, UsageError
from host.errors import OrderError
from host.query.queries import Query, Term
from host.query.tables import output_schema
from spark_offload.task.join import JoinTask
from spark_offload.task.task import BUFFER_ROWS
from tests.spark_offload.device_sources import made_by_task
from tests.windows import over

SCHEMA = pa.schema([("t", pa.int64()), ("x", pa.int64()), ("word", pa.string())])
BATCH = 10_000


class Partition:
    """A partition that is made as it is read; says how much of it has been."""

    def __init__(self, rows, **changes):
        self.rows, self.read = rows, 0
        self.changes = changes

    def __iter__(self):
        rng = np.random.default_rng(4)
        for begin in range(0, self.rows, BATCH):
            numbers = np.arange(begin, begin + BATCH)
            side = (numbers % 2).astype(np.int8)
            words = np.array(["a", "b", "c"])[rng.integers(0, 3, BATCH)]
            columns = {"side": side, "order": numbers, "row": numbers // 2}
            for letter, own in (("l", side == 0), ("r", side == 1)):
                values = (numbers, rng.integers(0, 2000, BATCH), words)
                for index, column in enumerate(values):
                    columns[f"{letter}{index}"] = pa.array(column, mask=~own)
            for name, change in self.changes.items():
                columns[name] = change(begin, columns[name])
            self.read += BATCH
            yield pa.record_batch(columns)


def task(**options):
    query = Query(
        band=options.pop("terms", [Term("x", "x")]), time="t",
        **over(options.pop("window", TimeWindow(100))), sorted=options.pop("declared", False),
    )  # fmt: skip
    return JoinTask(
        query=query,
        devices=made_by_task("software:"),
        left=SCHEMA,
        right=SCHEMA,
        output=output_schema(SCHEMA, SCHEMA),
        **options,
    )


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "options",
    [{}, {"terms": [Term("word", "word"), Term("x", "x", -9, 9)]}, {"window": CountWindow(50)}],
)
def test_results_come_before_the_partition_has_been_read(options):
    partition = Partition(20 * BUFFER_ROWS // BATCH * BATCH)
    reports, ahead, results = [], [], 0
    join = task(**options).function("join", reports.append)
    for batch in join(iter(partition)):
        results += batch.num_rows
        ahead.append(partition.read - batch.column("t")[-1].as_py())
        assert batch.schema == output_schema(SCHEMA, SCHEMA)
    # The buffer, a batch on its way in, what is staged and what the device has not answered yet.
    assert max(ahead) < 4 * BUFFER_ROWS
    assert len(ahead) > 10
    (metrics,) = reports
    assert metrics.left_rows == metrics.right_rows == partition.rows // 2
    assert metrics.results == results > 1000


def test_an_empty_partition_is_reported_too():
    reports = []
    assert list(task().function("join", reports.append)(iter(()))) == []
    assert reports[0].results == reports[0].left_rows == 0


def test_what_is_wrong_far_into_a_partition_is_named():
    def broken(begin, column):
        return pa.array(column, mask=(column % BATCH == 8) & (begin == 2 * BATCH))

    with pytest.raises(UsageError, match=r"'left\.t' is null in the row with t=.*=\d"):
        list(task().function("join", print)(iter(Partition(5 * BATCH, order=broken))))
    falling = Partition(3 * BATCH, row=lambda begin, column: column[::-1])
    with pytest.raises(OrderError, match=r"'left\.t'"):
        list(task(declared=True).function("join", print)(iter(falling)))


def test_a_band_may_have_values_beyond_the_field_of_its_device(simulated_bundle):
    """Each task places its own rows, so nobody reads an input before for the range of a column."""

    def far(begin, column):
        values = pc.if_else(pc.less(column, 400), pc.add(column, (begin + 1) << 40), column)
        return values.cast(pa.int64())

    band = task(terms=[Term("x", "x", -3, 3)], window=CountWindow(30))
    answers = []
    for device in ("software:", simulated_bundle):
        rows = iter(Partition(2 * BATCH, l1=far, r1=far))
        on_device = replace(band, devices=made_by_task(device))
        batches = list(on_device.function("join", lambda _: None)(rows))
        answers.append(pa.Table.from_batches(batches))
    assert answers[0].equals(answers[1])
    assert pc.any(pc.greater(answers[0]["x"], 1 << 50)).as_py()
    assert answers[0].num_rows > 1_000
