# SPDX-License-Identifier: Apache-2.0
"""A graph that is opened in the middle of an execution starts again with its first row."""

from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest

from host import open_device
from host.pipeline import Pipeline
from host.query.queries import Query
from host.runtime import Governor, Quantity, Quantum, Scheduler

ROWS = 50_000
QUERY = Query(on="x", time="t", rows=9, sorted=True)


def side(number):
    """Return rows that are not sorted by time."""
    rng = np.random.default_rng(number)
    times = rng.permutation(ROWS) * 2 + number
    return pa.table({"t": times, "x": rng.integers(0, 50, ROWS)})


def numbers():
    for begin in range(0, ROWS, 500):
        yield pa.record_batch({"n": np.arange(begin, begin + 500)})


#: Pipelines whose streams keep rows, runs in files, a generator, or a device at work.
PIPELINES = {
    "sort": lambda left, right, device: left.governed_by(Governor(Quantity(1, 1))),
    "join": lambda left, right, device: left.join(right, QUERY, device),
    "merge": lambda left, right, device: left.merge(right, by="t").limit(80_000, skip=5),
    "distinct": lambda left, right, device: left.distinct("x", "t"),
    "generator": lambda left, right, device: Pipeline.of_batches(
        numbers, pa.schema({"n": pa.int64()})
    ).filter(lambda n: pa.array(n.to_numpy() % 3 == 0)),
}


@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize("name", PIPELINES)
def test_a_graph_may_start_again_at_any_time(name, restart):
    left, right = (Pipeline.of_table(side(number)).sorted("t") for number in (0, 1))
    with open_device("software:") as device:
        pipeline = PIPELINES[name](left, right, device)
        expected = pipeline.collect()
        graph = pipeline.execution().graph()
        with closing(Scheduler(graph, Quantum(4_096)).read()) as first:
            assert 0 < next(first).num_rows < expected.num_rows
            again = list(Scheduler(graph, Quantum(4_096)).read(restart))
        assert pa.Table.from_batches(again) == expected
        assert pipeline.collect() == expected  # the device owes nothing
