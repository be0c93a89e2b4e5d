# SPDX-License-Identifier: Apache-2.0
import pytest

from host.runtime import (
    ExecStreamGraph,
    GraphError,
    LifeCycleError,
    Quantum,
    Scheduler,
    StreamState,
)
from tests.host.runtime.streams import (
    Concatenate,
    ConfluenceParams,
    MockProducer,
    MockProducerParams,
    Uniq,
    UniqParams,
    values_of,
)


def uniq_graph(values, fail_on_duplicate=False, rows=4):
    graph = ExecStreamGraph(rows)
    producer = graph.add(MockProducer(), MockProducerParams(values=tuple(values)))
    uniq = graph.add(Uniq(), UniqParams(fail_on_duplicate=fail_on_duplicate))
    graph.connect(producer, uniq)
    graph.prepare()
    return graph, producer


def test_uniq_with_duplicates():
    graph, _ = uniq_graph(row // 2 for row in range(5000))
    assert values_of(Scheduler(graph).run()) == list(range(2500))


def test_uniq_without_duplicates():
    graph, _ = uniq_graph(range(500))
    assert values_of(Scheduler(graph, Quantum(1)).run()) == list(range(500))


def test_uniq_fails_on_a_duplicate_and_skips_it_when_executed_again():
    graph, _ = uniq_graph([1, 1, 2], fail_on_duplicate=True)
    with pytest.raises(ValueError, match="duplicate 1"):
        Scheduler(graph).run()
    graph.open()
    scheduler = Scheduler(graph)
    uniq = graph.outlet
    seen = []
    for _ in range(10):
        try:
            scheduler.step()
        except ValueError:
            continue
        if uniq.output.demand():
            seen += values_of([uniq.output.access()])
            uniq.output.consume()
        if uniq.output.at_end:
            break
    assert seen == [1, 2]


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
    stream.prepare(MockProducerParams(values=(1,)))
    stream.close()
    assert stream.state is StreamState.CLOSED
    assert stream.closed == 3


def test_a_stream_is_prepared_once_and_before_it_is_opened():
    stream = MockProducer("source")
    with pytest.raises(LifeCycleError, match="'source' is opened before"):
        stream.open()
    stream.prepare(MockProducerParams())
    with pytest.raises(LifeCycleError, match="'source' is prepared twice"):
        stream.prepare(MockProducerParams())
    with pytest.raises(LifeCycleError, match="at least one row"):
        Quantum(0)


def test_a_graph_needs_one_outlet():
    graph = ExecStreamGraph()
    with pytest.raises(GraphError, match="none"):
        graph.prepare()
    for _ in range(2):
        graph.add(MockProducer(), MockProducerParams())
    with pytest.raises(GraphError, match="'MockProducer', 'MockProducer 2'"):
        graph.prepare()
    with pytest.raises(LifeCycleError, match="not been prepared"):
        _ = graph.outlet


def test_ports_are_connected_as_often_as_there_are():
    graph = ExecStreamGraph()
    first = graph.add(MockProducer("a"), MockProducerParams())
    second = graph.add(MockProducer("b"), MockProducerParams())
    uniq = graph.add(Uniq(), UniqParams())
    graph.connect(first, uniq)
    with pytest.raises(GraphError, match="one output"):
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
    source = graph.add(MockProducer(), MockProducerParams())
    loop = [graph.add(Concatenate(name), ConfluenceParams()) for name in "xy"]
    graph.connect(loop[0], loop[1])
    graph.connect(loop[1], loop[0])
    with pytest.raises(GraphError, match="do not lead to 'MockProducer': x, y"):
        graph.prepare()
    assert not source.inputs
