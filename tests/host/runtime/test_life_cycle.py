# SPDX-License-Identifier: Apache-2.0
import pytest

from host.pipeline.sorting import Uniq, UniqParams
from host.runtime import (
    ExecStreamGraph,
    GraphError,
    Quantum,
    Scheduler,
    StreamParams,
    StreamState,
)
from host.runtime.testing import MockProducer, MockProducerParams, values_of
from tests.host.runtime.streams import Concatenate, given_values


def uniq_graph(values):
    graph = ExecStreamGraph(4)
    producer = graph.add(MockProducer(), given_values(values))
    uniq = graph.add(Uniq(), UniqParams())
    graph.connect(producer, uniq)
    graph.prepare()
    return graph, producer


def test_a_graph_is_executed_again_and_nothing_is_left_over():
    graph, producer = uniq_graph([1, 1, 2, 2, 3])
    scheduler = Scheduler(graph)
    reader = scheduler.read()
    assert values_of([next(reader)])[0] == 1
    reader.close()
    assert all(stream.state is StreamState.CLOSED for stream in graph.streams)
    assert values_of(scheduler.run()) == [1, 2, 3]
    assert values_of(scheduler.run(restart=True)) == [1, 2, 3]
    assert producer.closed == 3


def test_a_stream_may_be_closed_at_any_time():
    stream = MockProducer()
    stream.close()
    stream.close()
    assert stream.state is StreamState.NEW
    stream.prepare(MockProducerParams(rows=1))
    stream.close()
    assert stream.state is StreamState.CLOSED
    assert stream.closed == 3


def test_a_stream_is_prepared_once_and_before_it_is_opened():
    stream = MockProducer("source")
    with pytest.raises(GraphError, match="'source' is opened before"):
        stream.open()
    stream.prepare(MockProducerParams(rows=0))
    with pytest.raises(GraphError, match="'source' is prepared twice"):
        stream.prepare(MockProducerParams(rows=0))
    with pytest.raises(GraphError, match="at least one row"):
        Quantum(0)


def test_a_graph_needs_one_outlet():
    graph = ExecStreamGraph()
    with pytest.raises(GraphError, match="none"):
        graph.prepare()
    for _ in range(2):
        graph.add(MockProducer(), MockProducerParams(rows=0))
    with pytest.raises(GraphError, match="'MockProducer', 'MockProducer 2'"):
        graph.prepare()
    with pytest.raises(GraphError, match="not been prepared"):
        _ = graph.outlet


def test_ports_are_connected_as_often_as_there_are():
    graph = ExecStreamGraph()
    first = graph.add(MockProducer("a"), MockProducerParams(rows=0))
    second = graph.add(MockProducer("b"), MockProducerParams(rows=0))
    uniq = graph.add(Uniq(), UniqParams())
    graph.connect(first, uniq)
    with pytest.raises(GraphError, match="1 input"):
        graph.connect(second, uniq)
    with pytest.raises(GraphError, match="not part of the graph"):
        graph.connect(MockProducer(), uniq)


def test_a_conduit_without_input_cannot_be_prepared():
    graph = ExecStreamGraph()
    graph.add(Uniq(), UniqParams())
    with pytest.raises(GraphError, match="needs 1 input"):
        graph.prepare()


def test_a_circle_is_noticed():
    graph = ExecStreamGraph()
    source = graph.add(MockProducer(), MockProducerParams(rows=0))
    loop = [graph.add(Concatenate(name), StreamParams()) for name in "xy"]
    graph.connect(loop[0], loop[1])
    graph.connect(loop[1], loop[0])
    with pytest.raises(GraphError, match="do not lead to 'MockProducer': x, y"):
        graph.prepare()
    assert not source.inputs
