# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import pytest

from host.errors import FailureError
from host.runtime import (
    Governor,
    GraphError,
    OnError,
    Quantity,
    Requirements,
    Scheduler,
)
from host.runtime.graph import shares
from host.runtime.testing import MockProducer, transform_graph, values_of
from tests.host.runtime.streams import Fault, FaultParams, given_values


class Greedy(MockProducer):
    def __init__(self, name, least, most):
        super().__init__(name)
        self.wants = Requirements(Quantity(buffers=least), Quantity(threads=1, buffers=most))

    def requirements(self):
        return self.wants


@given(st.integers(0, 50), st.lists(st.integers(0, 20), max_size=6))
def test_shares_are_in_proportion_and_give_all(amount, wishes):
    result = shares(amount, wishes)
    assert sum(result) == min(amount, sum(wishes))
    for share, wish in zip(result, wishes, strict=True):
        assert 0 <= share <= wish
        if sum(wishes) > amount:
            assert abs(share - amount * wish / sum(wishes)) < 1


def test_streams_get_their_minimum_and_a_share_of_the_rest():
    governor = Governor(Quantity(threads=1, buffers=10))
    streams = [Greedy("a", 1, 5), Greedy("b", 2, 14)]
    with governor.granting(streams):
        assert [stream.allocation for stream in streams] == [Quantity(1, 3), Quantity(0, 7)]
        assert governor.available == Quantity(0, 0)
        with (
            pytest.raises(FailureError, match="c: 0 threads, 1 buffers"),
            governor.granting([Greedy("c", 1, 1)]),
        ):
            pass
    assert governor.available == governor.budget
    assert streams[0].allocation == Quantity()


def test_quantities_make_sense():
    with pytest.raises(GraphError, match="negative"):
        Quantity(threads=-1)
    with pytest.raises(GraphError, match="must cover"):
        Requirements(Quantity(buffers=2), Quantity(buffers=1))


def test_what_a_graph_was_granted_returns_when_it_ends_however_it_ends():
    graph = transform_graph(given_values([1, 2, 3]), (Fault(), FaultParams()))
    with pytest.raises(ValueError, match="broken"):
        Scheduler(graph).run()
    assert graph.governor.available == graph.governor.budget


def test_what_is_no_stream_borrows_too_and_is_named_if_there_is_too_little():
    governor = Governor(Quantity(threads=2, buffers=8))
    wanted = Requirements(Quantity(buffers=3), Quantity(threads=1, buffers=6))
    with governor.lending("rows between segments", wanted) as granted:
        assert granted == Quantity(threads=1, buffers=6)
        assert governor.available == Quantity(threads=1, buffers=2)
        with pytest.raises(FailureError, match="rows between segments: 0 threads, 3 buffers"):
            governor.lending("rows between segments", wanted).__enter__()
    assert governor.available == governor.budget


def test_resuming_from_an_error_that_comes_back_ends():
    graph = transform_graph(given_values([1, 2, 3]), (Fault(), FaultParams()))
    scheduler = Scheduler(graph, on_error=OnError.RESUME)
    with pytest.raises(ValueError, match="broken"):
        scheduler.run()
    assert len(scheduler.errors) == 1


def test_a_stream_that_fails_now_and_then_is_resumed():
    class Moody(MockProducer):
        def execute(self, quantum):
            self.calls = getattr(self, "calls", 0) + 1
            if self.calls % 2:
                raise OSError("try again")
            return super().execute(quantum)

    from host.runtime import ExecStreamGraph

    graph = ExecStreamGraph(2)
    graph.add(Moody(), given_values([1, 2, 3, 4], 1))
    graph.prepare()
    scheduler = Scheduler(graph, on_error=OnError.RESUME)
    assert values_of(scheduler.run()) == [1, 2, 3, 4]
    assert {str(error) for _, error in scheduler.errors} == {"try again"}
