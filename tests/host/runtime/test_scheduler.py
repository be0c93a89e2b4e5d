# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import pytest

from host.pipeline.operations import Limit, LimitParams
from host.pipeline.sorting import Sort, SortedMerge, SortedMergeParams, SortParams, Uniq, UniqParams
from host.runtime import (
    ConduitExecStream,
    ExecStreamGraph,
    GraphError,
    Quantum,
    Scheduler,
    StreamParams,
    StreamResult,
    StreamState,
)
from host.runtime.testing import MockProducer, values_of
from tests.host.runtime.streams import (
    Concatenate,
    Fault,
    FaultParams,
    Repeat,
    RepeatParams,
    given_values,
)


class Idler(ConduitExecStream):
    """Claims to need input, and never takes any."""

    def execute(self, quantum):
        return StreamResult.BUF_UNDERFLOW


def chain(*streams, rows=2):
    graph = ExecStreamGraph(rows)
    previous = None
    for stream, params in streams:
        graph.add(stream, params)
        if previous is not None:
            graph.connect(previous, stream)
        previous = stream
    graph.prepare()
    return graph


def test_a_graph_that_cannot_move_names_its_streams_and_states():
    graph = chain((MockProducer(), given_values([1, 2, 3, 4, 5])), (Idler(), StreamParams()))
    with pytest.raises(GraphError) as caught:
        Scheduler(graph).run()
    text = str(caught.value)
    assert "MockProducer: OPEN" in text
    assert "last answer BUF_OVERFLOW" in text
    assert "Idler: OPEN" in text
    assert "last answer BUF_UNDERFLOW" in text
    assert "OVERFLOW 2/2 rows" in text
    assert all(stream.state is StreamState.CLOSED for stream in graph.streams)


def test_an_error_closes_every_stream_and_the_graph_can_be_executed_again():
    source = MockProducer()
    graph = chain((source, given_values(range(9))), (Fault(), FaultParams(after=2)))
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            Scheduler(graph).run()
        assert all(stream.state is StreamState.CLOSED for stream in graph.streams)
    assert source.closed == 2


def test_an_error_while_closing_does_not_hide_the_first_one_nor_stop_the_closing():
    class Sticky(MockProducer):
        def close_impl(self):
            super().close_impl()
            raise OSError("stuck")

    source = Sticky()
    graph = chain((source, given_values([1])), (Fault(), FaultParams()))
    with pytest.raises(ValueError, match="broken") as caught:
        Scheduler(graph).run()
    assert caught.value.__notes__ == ["while closing, also: stuck"]
    assert source.state is StreamState.CLOSED
    good = chain((Sticky(), given_values([1])))
    with pytest.raises(OSError, match="stuck"):
        Scheduler(good).run()


def test_a_stream_that_gives_way_lets_others_go_first():
    graph = chain(
        (MockProducer(), given_values(range(4), 1)),
        (Uniq(), UniqParams()),
    )
    results = []
    Scheduler(graph, observe=lambda stream, result: results.append((stream.name, result))).run()
    assert ("MockProducer", StreamResult.YIELD) in results
    assert results[-1] == ("Uniq", StreamResult.EOS)


@st.composite
def plans(draw):
    """A random tree of streams, as nested tuples."""
    leaf = st.lists(st.integers(0, 5), max_size=12).map(lambda values: ("values", values))
    return draw(
        st.recursive(
            leaf,
            lambda inner: st.one_of(
                st.tuples(st.just("uniq"), inner),
                st.tuples(st.just("sort"), inner),
                st.tuples(st.just("repeat"), inner, st.integers(0, 3)),
                st.tuples(st.just("limit"), inner, st.integers(0, 9)),
                st.tuples(st.just("concatenate"), st.lists(inner, min_size=1, max_size=3)),
                st.tuples(st.just("merge"), st.lists(inner, min_size=1, max_size=3)),
            ),
            max_leaves=6,
        )
    )


def expected(plan):
    """What the tree produces, with lists."""
    kind, *rest = plan
    if kind == "values":
        return rest[0]
    if kind == "uniq":
        return sorted(set(expected(rest[0])))
    if kind == "sort":
        return sorted(expected(rest[0]))
    if kind == "repeat":
        return [value for value in expected(rest[0]) for _ in range(rest[1])]
    if kind == "limit":
        return expected(rest[0])[: rest[1]]
    joined = [value for part in rest[0] for value in expected(part)]
    return sorted(joined) if kind == "merge" else joined


def build(graph, plan, draw_rows):
    kind, *rest = plan
    if kind == "values":
        return graph.add(MockProducer(), given_values(rest[0], draw_rows()))
    parts = rest[0] if kind in ("concatenate", "merge") else [rest[0]]
    producers = [build(graph, part, draw_rows) for part in parts]
    if kind in ("uniq", "merge"):
        producers = [behind(graph, each, Sort(), SORT, draw_rows) for each in producers]
    stream, params = {
        "uniq": (Uniq(), UniqParams()),
        "sort": (Sort(), SORT),
        "repeat": (Repeat(), RepeatParams(times=rest[-1])),
        "limit": (Limit(), LimitParams(rows=rest[-1])),
        "concatenate": (Concatenate(), StreamParams()),
        "merge": (SortedMerge(), SortedMergeParams(by=["value"])),
    }[kind]
    graph.add(stream, params)
    for producer in producers:
        graph.connect(producer, stream, draw_rows())
    return stream


SORT = SortParams(by=["value"], rows=3)


def behind(graph, producer, stream, params, draw_rows):
    graph.add(stream, params)
    graph.connect(producer, stream, draw_rows())
    return stream


@given(plans(), st.data())
def test_random_graphs_produce_what_lists_produce(plan, data):
    def small():
        return data.draw(st.integers(1, 4))

    graph = ExecStreamGraph(small())
    build(graph, plan, small)
    graph.prepare()
    fullest = {}

    def observe(stream, result):
        for buffer in (*stream.inputs, *stream.outputs):
            fullest[buffer.name] = max(fullest.get(buffer.name, 0), buffer.rows / buffer.capacity)

    scheduler = Scheduler(graph, Quantum(small()), observe)
    # Cut short at a random point first: nothing of it may show in the next execution.
    for _, _ in zip(range(data.draw(st.integers(0, 5))), reader := scheduler.read(), strict=False):
        pass
    reader.close()
    assert values_of(scheduler.run()) == expected(plan)
    assert max(fullest.values(), default=0) <= 1
