# SPDX-License-Identifier: Apache-2.0
from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host.errors import OrderError, UsageError
from host.pipeline.merging import ScaleGate, ScaleGateParams
from host.runtime import Buffer, ExecStreamGraph, Quantum, Scheduler, StreamResult
from host.runtime.source import ArrowSource, ArrowSourceParams
from sim.model.scale_gate import GateWord, GateWordKind, ScaleGateReference


def batch(source, times, first=0):
    return pa.record_batch(
        {
            "t": pa.array(times, pa.int64()),
            "source": np.full(len(times), source, np.int64),
            "n": np.arange(first, first + len(times)),
        }
    )


def rows(batches):
    return [tuple(row.values()) for one in batches for row in one.to_pylist()]


def merged(sources, quantum=50, cut=5):
    """Run a graph of sources of one gate; return its rows."""
    graph = ExecStreamGraph(8)
    gate = graph.add(ScaleGate(), ScaleGateParams(by="t"))
    for number, times in enumerate(sources):
        supply = [batch(number, times)]
        graph.connect(
            graph.add(ArrowSource(), ArrowSourceParams(supply=lambda s=supply: s, rows=cut)), gate
        )
    graph.prepare()
    return rows(Scheduler(graph, Quantum(quantum)).run())


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.integers(-9, 9), max_size=20).map(sorted), min_size=1, max_size=5),
    st.integers(1, 7),
    st.integers(1, 40),
)
def test_sorted_sources_become_one_by_time_and_source(sources, cut, quantum):
    expected = sorted(
        (time, number, n) for number, times in enumerate(sources) for n, time in enumerate(times)
    )
    assert merged(sources, quantum, cut) == expected


class Driven:
    """A gate whose buffers the test fills."""

    def __init__(self, sources, **params):
        self.seconds = 0.0
        self.gate = ScaleGate()
        self.inputs = [Buffer(100) for _ in range(sources)]
        for buffer in self.inputs:
            self.gate.connect_input(buffer)
        self.output = Buffer(1000)
        self.gate.connect_output(self.output)
        self.gate.prepare(ScaleGateParams(by="t", clock=lambda: self.seconds, **params))
        self.gate.open()
        self.sent = [0] * sources

    def push(self, source, *times):
        """Give rows to a source; return (time, source) of what becomes ready."""
        self.inputs[source].produce(batch(source, times, self.sent[source]))
        self.sent[source] += len(times)
        return self.run()

    def run(self):
        self.result = self.gate.execute(Quantum(1000))
        found = []
        while self.output.demand():
            found += [(row["t"], row["source"]) for row in self.output.access().to_pylist()]
            self.output.consume()
        return found


@settings(max_examples=40)
@given(st.integers(1, 4), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=30))
def test_rows_are_ready_when_the_reference_says_so(sources, steps):
    driven, reference = Driven(sources), ScaleGateReference(sources)
    now = [1] * sources  # a source of the reference has shown zero at first
    for source, step in steps:
        source %= sources
        now[source] += step
        ready = reference.push(source, GateWord(GateWordKind.TUPLE, now[source]))
        assert driven.push(source, now[source]) == [(word.time, word.source) for word in ready]
    rest = []
    for number, buffer in enumerate(driven.inputs):
        buffer.finish()
        ready = reference.push(number, GateWord(GateWordKind.LEAVE))
        assert driven.run() == [(word.time, word.source) for word in ready]
        rest += ready
    assert driven.result is StreamResult.EOS


def test_a_source_that_goes_back_in_time_is_named():
    for times, message in [
        ((7, 5), r"row 3 of the input's partition 1 .* has 5 after 7"),
        ((5,), "row 2 .* has 5 after 6"),
    ]:
        driven = Driven(2)
        driven.push(1, 4, 6)
        assert driven.push(0, 9) == [(4, 1), (6, 1)]  # what was there before is not lost
        with pytest.raises(OrderError, match=message):
            driven.push(1, *times)


def test_a_row_without_a_time_is_named():
    driven = Driven(1)
    driven.push(0, 4)
    with pytest.raises(OrderError, match="row 2 "):
        driven.push(0, 5, None)


def test_explicit_watermarks_release_rows():
    said = [None]
    driven = Driven(2, watermarks=[lambda: None, lambda: said[0]], deadline=60.0)
    assert driven.push(0, 3, 5) == []
    said[0] = 4
    assert driven.run() == [(3, 0)]
    said[0] = 2  # a watermark never falls
    assert driven.push(1, 4) == [(4, 1)]


def test_a_source_that_stalls_is_counted_excluded_and_comes_back():
    driven = Driven(2, deadline=10.0)
    assert driven.push(0, 3, 5) == []
    driven.seconds = 9.0
    assert driven.run() == []
    assert driven.result is StreamResult.BUF_UNDERFLOW
    driven.seconds = 10.5
    assert driven.run() == [(3, 0), (5, 0)]
    assert driven.gate.excluded == [False, True]
    assert driven.gate.stalls == [0.0, 10.5]
    assert driven.push(1, 6) == []
    assert driven.gate.excluded == [False, False]
    assert driven.push(0, 7) == [(6, 1)]
    driven.seconds = 30.0
    assert driven.run() == [(7, 0)]
    with pytest.raises(OrderError, match="has 6 after 7"):
        driven.push(1, 6)


def test_a_gate_waits_for_the_deadline_only_while_rows_wait():
    driven = Driven(2, deadline=0.01)
    assert not driven.gate.wait(1.0)
    driven.push(0, 3)
    assert driven.gate.wait(1.0)
    driven.seconds = 1.0
    assert driven.run() == [(3, 0)]
    assert not Driven(2).gate.wait(1.0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"deadline": 0}, "must be above zero, not 0"),
        ({"watermarks": [lambda: None] * 2}, "need a deadline"),
        ({"watermarks": [lambda: None], "deadline": 1.0}, "each of 2 sources, not 1"),
    ],
)
def test_wrong_parameters_are_refused(params, message):
    with pytest.raises(UsageError, match=message):
        Driven(2, **params)
