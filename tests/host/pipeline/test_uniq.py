# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import pyarrow as pa
import pytest

from host.errors import OrderError, UsageError
from host.pipeline.sorting import Uniq, UniqParams
from host.runtime import OnError, Quantum, Scheduler
from host.runtime.testing import (
    MockProducerParams,
    duplicates,
    ramp,
    transform_graph,
    values_of,
    verify_output,
)
from tests.host.runtime.streams import given_values


def uniq_graph(source, **params):
    return transform_graph(source, (Uniq(), UniqParams(**params)))


def test_with_duplicates():
    """The seed's unit test: rows 0, 0, 1, 1, … and half as many come out."""
    graph = uniq_graph(MockProducerParams(rows=5000, generate=duplicates(2)))
    verify_output(graph, 2500, ramp)


def test_without_duplicates():
    verify_output(uniq_graph(MockProducerParams(rows=5000), fail_on_duplicate=True), 5000, ramp)


def test_one_value_only():
    graph = uniq_graph(MockProducerParams(rows=5000, generate=duplicates(5000)))
    verify_output(graph, 1, ramp)


def test_no_rows():
    verify_output(uniq_graph(MockProducerParams(rows=0)), 0, ramp)


def test_a_duplicate_fails_and_is_skipped_when_the_stream_is_executed_again():
    graph = uniq_graph(given_values([1, 1, 2, 3, 3, 3]), fail_on_duplicate=True)
    with pytest.raises(OrderError, match=r"distinct by value, but row 1 .* has value=1"):
        Scheduler(graph).run()
    scheduler = Scheduler(graph, on_error=OnError.RESUME)
    assert values_of(scheduler.run()) == [1, 2, 3]
    assert [error.position for _, error in scheduler.errors] == [1, 4, 5]


def test_input_that_is_not_sorted_is_an_error():
    graph = uniq_graph(given_values([1, 2, 3, 4, 3], batch_rows=4))
    with pytest.raises(UsageError, match=r"row 4 .* has \{'value': 3\} after \{'value': 4\}"):
        Scheduler(graph).run()


def test_an_unknown_column_is_an_error():
    with pytest.raises(UsageError, match="'x'"):
        Scheduler(uniq_graph(given_values([1]), by=["x"])).run()


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(1, 5), st.integers(1, 9))
def test_any_sorted_values(values, batch_rows, quantum):
    graph = uniq_graph(given_values(sorted(values), batch_rows))
    assert values_of(Scheduler(graph, Quantum(quantum)).run()) == sorted(set(values))


def test_nulls_are_equal_and_come_last():
    from host.pipeline.sorting import falls, repeats

    rows = pa.record_batch({"x": [1, 1, 2, None, None], "y": [1.0, 2.0, None, 3.0, 3.0]})
    assert repeats(rows, ["x", "y"]).tolist() == [False, False, False, True]
    assert repeats(rows, ["x"]).tolist() == [True, False, False, True]
    assert not falls(rows, ["x", "y"]).any()
    assert falls(rows.take(pa.array([3, 2, 1, 0])), ["x"]).tolist() == [True, True, False]
