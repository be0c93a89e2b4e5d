# SPDX-License-Identifier: Apache-2.0
"""Graphs whose streams share inputs, write, end early, fail and go on do what lists do."""

from collections import Counter
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
import pytest

from host.pipeline.operations import Limit, LimitParams
from host.runtime import ExecStreamGraph, OnError, Quantum, Scheduler, StreamParams, StreamState
from host.runtime.testing import MockProducer, values_of
from tests.host.runtime.column_streams import (
    Add,
    AddParams,
    Gather,
    Keep,
    Skip,
    SkipParams,
    Stumble,
    Values,
    ValuesParams,
)
from tests.host.runtime.streams import (
    Concatenate,
    Repeat,
    RepeatParams,
    given_values,
)

SMALL = st.integers(1, 4)


@dataclass(frozen=True)
class Node:
    """A stream, what its output is as a list, and how its buffers may be read."""

    stream: object
    values: list
    ordered: bool  # or the values come in any order
    failures: int  # how often it raises if it gets all of its input


def with_parameters(draw, graph, kind, sources):
    """Add a stream of ``kind`` behind ``sources``, and work out its output."""
    inputs = [value for source in sources for value in source.values]
    ordered = len(sources) == 1 and sources[0].ordered
    failures = 0
    if kind == "add":
        amount = draw(st.integers(1, 9))
        stream = graph.add(Add(), AddParams(amount=amount))
        values = [value + amount for value in inputs]
    elif kind == "skip":
        bad = draw(st.integers(0, 6))
        stream = graph.add(Skip(), SkipParams(bad=bad))
        values = [value for value in inputs if value % 7 != bad]
        failures = len(inputs) - len(values)
    elif kind == "limit":
        rows = draw(st.integers(0, 6))
        stream = graph.add(Limit(), LimitParams(rows=rows))
        values = inputs[:rows]
    elif kind == "gather":
        stream, values = graph.add(Gather(), StreamParams()), inputs
    else:
        stream = graph.add({"keep": Keep, "stumble": Stumble}[kind](), StreamParams())
        values = inputs
    for source in sources:
        graph.connect(source.stream, stream, draw(SMALL))
    return Node(stream, values, ordered, failures)


def random_graph(draw):
    """Return a prepared graph and its nodes; the last one is the outlet."""
    graph, nodes = ExecStreamGraph(draw(SMALL)), []
    for _ in range(draw(st.integers(1, 2))):
        values = draw(st.lists(st.integers(0, 60), max_size=20))
        params = ValuesParams(values=values, batch_rows=draw(SMALL))
        nodes.append(Node(graph.add(Values(), params), values, True, 0))
    taken = set()
    for _ in range(draw(st.integers(0, 7))):
        kind = draw(st.sampled_from(["add", "keep", "skip", "stumble", "limit", "gather"]))
        able = [node for node in nodes if kind != "limit" or node.ordered]
        most = 3 if kind == "gather" else 1
        indices = st.integers(0, len(able) - 1)
        chosen = draw(st.lists(indices, min_size=1, max_size=most, unique=True))
        sources = [able[index] for index in chosen]
        taken |= {id(source) for source in sources}
        nodes.append(with_parameters(draw, graph, kind, sources))
    ends = [node for node in nodes if id(node) not in taken]
    nodes.append(with_parameters(draw, graph, "gather", ends))
    graph.prepare()
    return graph, nodes


def all_values(batches):
    return Counter(value for batch in batches for value in batch["x"].tolist())


@given(st.data())
def test_shared_inputs_writers_limits_and_errors_do_what_lists_do(data):
    graph, nodes = random_graph(data.draw)
    quantum = Quantum(data.draw(SMALL))
    # Cut short at a random point first: nothing of it may show in the next execution.
    reader = Scheduler(graph, quantum, on_error=OnError.RESUME).read()
    for _, _ in zip(range(data.draw(st.integers(0, 5))), reader, strict=False):
        pass
    reader.close()
    assert all(stream.state is not StreamState.OPEN for stream in graph.streams)

    scheduler = Scheduler(graph, quantum, on_error=OnError.RESUME)
    assert all_values(scheduler.run()) == Counter(nodes[-1].values)
    failed = Counter(id(stream) for stream, _ in scheduler.errors)
    cut = any(isinstance(node.stream, Limit) for node in nodes)
    for node in nodes:
        if isinstance(node.stream, Keep):
            assert node.stream.unchanged
        if isinstance(node.stream, Skip):
            assert failed[id(node.stream)] <= node.failures
            assert cut or failed[id(node.stream)] == node.failures

    strict = Scheduler(graph, quantum)
    if failed and not cut:
        with pytest.raises((ValueError, TimeoutError), match="is bad|no answer"):
            strict.run()
    elif not failed:
        assert all_values(strict.run()) == Counter(nodes[-1].values)
    assert {stream.state for stream in graph.streams} == {StreamState.CLOSED}


def shared(first, *, rows=2):
    """A producer of 20 rows for ``first`` and for another stream, both concatenated."""
    graph = ExecStreamGraph(rows)
    source = graph.add(MockProducer(), given_values(range(20)))
    other, both = Repeat(), Concatenate()
    graph.add(first, LimitParams(rows=1))
    graph.add(other, RepeatParams(times=1))
    graph.add(both, StreamParams())
    for stream in (first, other):
        graph.connect(source, stream)
        graph.connect(stream, both)
    graph.prepare()
    return graph


def test_a_limit_that_is_reached_does_not_hold_up_those_who_share_its_input():
    assert values_of(Scheduler(shared(Limit())).run()) == [0, *range(20)]


class Diligent(MockProducer):
    """A producer that has to complete its work."""

    can_early_close = False


def test_a_stream_that_is_not_to_be_closed_early_completes_its_work():
    for producer, taken in ((MockProducer(), False), (Diligent(), True)):
        graph = ExecStreamGraph(2)
        rows = []
        params = given_values(range(20), batch_rows=1)
        watched = params.generate
        graph.add(producer, type(params)(rows=20, generate=lambda r: rows.extend(r) or watched(r)))
        limit = graph.add(Limit(), LimitParams(rows=1))
        graph.connect(producer, limit)
        graph.prepare()
        assert values_of(Scheduler(graph, Quantum(1)).run()) == [0]
        assert (rows == list(range(20))) == taken
        assert producer.state is StreamState.CLOSED
