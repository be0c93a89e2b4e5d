# SPDX-License-Identifier: Apache-2.0
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from host.runtime import (
    Columns,
    ConduitExecStream,
    ExecStreamGraph,
    GraphError,
    Passing,
    Quantum,
    Scheduler,
    SingleOutputExecStream,
    StreamParams,
    StreamResult,
    plan_transfers,
)

M, I = True, False  # as in the seed: mutating, non-mutating


def passings(output, inputs):
    return [transfer.passing for transfer in plan_transfers(output, inputs)]


@pytest.mark.parametrize(
    ("output", "inputs", "index", "expected"),
    [
        (M, [M], 0, Passing.REFERENCE),  # 1. the only consumer
        (M, [M, I], 0, Passing.COPY),  # 2. not the last one
        (M, [I, M], 1, Passing.REFERENCE),  # 3. the last one
        (M, [I], 0, Passing.CONSTANT),
        (I, [M], 0, Passing.COPY),
        (I, [I], 0, Passing.CONSTANT),
    ],
)
def test_the_six_rows_of_the_table(output, inputs, index, expected):
    assert passings(output, inputs)[index] is expected


def test_what_an_earlier_consumer_keeps_is_not_written_into():
    transfers = plan_transfers(M, [I, M], [True, False])
    assert transfers[1].passing is Passing.COPY
    assert "keeps" in transfers[1].reason


class Produce(SingleOutputExecStream):
    """Produces three batches of its own arrays."""

    def open(self, restart=False):
        super().open(restart)
        self.left = 3
        self.kept = []

    def execute(self, quantum):
        if not self.output.provide():
            return StreamResult.BUF_OVERFLOW
        if not self.left:
            return self.finish()
        self.left -= 1
        batch = Columns({"x": np.arange(4)})
        self.kept.append(batch)
        self.output.produce(batch)
        return StreamResult.YIELD


@dataclass(frozen=True)
class AddParams(StreamParams):
    amount: int = 0


class Add(ConduitExecStream):
    """Adds in place, or only looks."""

    def prepare(self, params):
        super().prepare(params)
        self.amount = params.amount

    def open(self, restart=False):
        super().open(restart)
        self.seen = []

    def execute(self, quantum):
        result = self.precheck_conduit_buffers()
        if result is not StreamResult.YIELD:
            return result
        batch = self.input.access()
        self.seen.append(batch["x"].tolist())
        if self.amount:
            batch["x"][:] += self.amount
        self.output.produce(batch)
        self.input.consume()
        return StreamResult.YIELD


class Gather(ConduitExecStream):
    """All inputs, one after the other."""

    fan_in = None

    def execute(self, quantum):
        for buffer in self.inputs:
            while buffer.demand():
                if not self.output.produce(buffer.access()):
                    return StreamResult.BUF_OVERFLOW
                buffer.consume()
        if all(buffer.at_end for buffer in self.inputs):
            return self.finish()
        return StreamResult.BUF_UNDERFLOW


def fan_out(mutable, kinds):
    """A producer, one consumer for each of ``kinds`` (mutates, retains), and a gatherer."""
    graph = ExecStreamGraph(4)
    source = graph.add(Produce(), StreamParams())
    source.mutable_output = mutable
    gather = graph.add(Gather(), StreamParams())
    consumers = []
    for number, (mutates, retains) in enumerate(kinds):
        stream = graph.add(Add(f"add {number}"), AddParams(amount=(number + 1) * 10 * mutates))
        stream.mutates_input, stream.retains_input = mutates, retains
        stream.mutable_output = mutates
        graph.connect(source, stream)
        graph.connect(stream, gather)
        consumers.append(stream)
    graph.prepare()
    return graph, source, consumers


@given(
    st.booleans(),
    st.lists(st.tuples(st.booleans(), st.just(True)), min_size=1, max_size=4),
    st.integers(1, 20),
)
def test_nobody_sees_the_change_of_another(mutable, kinds, quantum):
    graph, source, consumers = fan_out(mutable, kinds)
    Scheduler(graph, Quantum(quantum)).run()
    for consumer in consumers:
        assert consumer.seen == [[0, 1, 2, 3]] * 3
    if not mutable:
        assert all(batch["x"].tolist() == [0, 1, 2, 3] for batch in source.kept)


def test_the_last_consumer_writes_in_place_when_the_others_have_read():
    graph, source, consumers = fan_out(True, [(False, False), (False, False), (True, True)])
    # Those that let go of their input must not pass it on.
    for consumer in consumers[:2]:
        consumer.output.produce = lambda batch: True
    Scheduler(graph).run()
    assert [consumer.seen for consumer in consumers] == [[[0, 1, 2, 3]] * 3] * 3
    assert all(batch["x"].tolist() == [30, 31, 32, 33] for batch in source.kept)
    assert sum(buffer.copied for buffer in graph.buffers) == 0


def test_the_plan_says_where_copies_are_and_the_counters_prove_it():
    graph, _, _ = fan_out(True, [(True, True), (False, True), (True, True)])
    plan = graph.plan()
    assert (
        "-> add 0: up to 4 rows, copy (mutating to mutating, and others consume it later)" in plan
    )
    assert "-> add 1: up to 4 rows, constant reference (mutating to non-mutating)" in plan
    assert "-> add 2: up to 4 rows, copy (mutating to mutating, and an earlier" in plan
    Scheduler(graph).run()
    copied = {buffer.name: buffer.copied for buffer in graph.buffers if buffer.copied}
    assert copied == {"Produce to all -> add 0": 3, "Produce to all -> add 2": 3}


def test_writing_through_a_constant_reference_raises():
    graph, _, consumers = fan_out(True, [(False, True)])
    consumers[0].amount = 5
    with pytest.raises(ValueError, match="read-only"):
        Scheduler(graph).run()


def test_a_batch_that_cannot_be_copied_for_writing_is_an_error():
    import pyarrow as pa

    _, source, _ = fan_out(False, [(True, True)])
    with pytest.raises(GraphError, match="produce Columns"):
        source.output.produce(pa.record_batch({"x": [1]}))
