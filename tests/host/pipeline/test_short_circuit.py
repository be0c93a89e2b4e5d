# SPDX-License-Identifier: Apache-2.0
"""A limit, or a reader that stops, lets nothing before it do more than is wanted."""

from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from itertools import count, islice
import subprocess
import sys
import threading

from hypothesis import given, settings
from hypothesis import strategies as st
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from host.errors import FailureError
from host.pipeline import Chained, Decision, Effect, Flag, Pipeline, parallel
from host.pipeline.operations import Limit, LimitParams

SCHEMA = pa.schema([("x", pa.int64())])


def one(value):
    return pa.record_batch([pa.array([value])], schema=SCHEMA)


class Fans:
    """Generators that make several rows of one, counted; None: rows without an end."""

    def __init__(self):
        self.made, self.begun, self.closed = Counter(), Counter(), Counter()
        self._lock = threading.Lock()

    def _count(self, counter, place):
        with self._lock:
            counter[place] += 1

    def values(self, value, place, rows):
        self._count(self.begun, place)
        try:
            for number in count() if rows is None else range(rows):
                self._count(self.made, place)
                yield value + number
        finally:
            self._count(self.closed, place)

    def of_batch(self, place, rows):
        def fan(batch):
            for value in batch.column("x").to_pylist():
                for each in self.values(value, place, rows):
                    yield one(each)

        return fan

    def of_list(self, place, rows):
        return lambda values: (each for value in values for each in self.values(value, place, rows))


def taken(values, rows, skip=0):
    """The first rows of an iterable, of which none is taken too many."""
    return islice(values, skip, skip + rows) if rows else iter(())


# An operation is ("fan", rows), ("add", amount), ("even",) or ("limit", rows, skip).


def pipeline_of(pipeline, operations, fans):
    for place, (kind, *values) in enumerate(operations):
        if kind == "fan":
            pipeline = pipeline.flat_map(fans.of_batch(place, *values), SCHEMA)
        elif kind == "add":
            pipeline = pipeline.map("x", lambda x, by=values[0]: pc.add(x, by))
        elif kind == "even":
            pipeline = pipeline.filter(lambda x: pc.equal(pc.bit_wise_and(x, 1), 0))
        else:
            pipeline = pipeline.limit(*values)
    return pipeline


def model_of(stream, operations, fans):
    for place, (kind, *values) in enumerate(operations):
        if kind == "fan":
            stream = fans.of_list(place, *values)(stream)
        elif kind == "add":
            stream = map(values[0].__add__, stream)
        elif kind == "even":
            stream = filter(lambda value: value % 2 == 0, stream)
        else:
            stream = taken(stream, *values)
    return stream


FAN = st.tuples(st.just("fan"), st.sampled_from([1, 2, 3, None]))
ADD = st.tuples(st.just("add"), st.integers(0, 3))
LIMIT = st.tuples(st.just("limit"), st.integers(0, 6), st.integers(0, 3))


@st.composite
def segments(draw, last=LIMIT):
    """Operations at any position of a pass; at most one filter, which never starves a fan."""
    operations = draw(st.lists(st.one_of(FAN, ADD), max_size=3))
    if draw(st.booleans()):
        operations.insert(draw(st.integers(0, len(operations))), ("even",))
    return [*operations, draw(last)]


VALUES = st.lists(st.integers(0, 9), max_size=12)


@settings(max_examples=120, deadline=None)
@given(VALUES, st.lists(segments(), min_size=1, max_size=2), st.booleans(), st.integers(1, 9))
def test_no_row_is_made_that_nobody_wants(values, parts, fuse, buffer_rows):
    operations = [operation for part in parts[:1] for operation in part]
    # Behind the first limit, a filter could starve: what comes there has an end, or one fan.
    operations += [each for part in parts[1:] for each in part if each[0] != "even"]
    table = pa.table({"x": pa.array(values, pa.int64())})
    ours, theirs = Fans(), Fans()
    pipeline = Pipeline.of_table(table).fused(fuse).batch_rows(buffer_rows, buffer_rows)
    result = pipeline_of(pipeline, operations, ours).collect()
    model = model_of(iter(values), operations, theirs)
    assert result["x"].to_pylist() == list(model)
    assert ours.made == theirs.made
    assert ours.closed == ours.begun


@settings(max_examples=60, deadline=None)
@given(VALUES, segments(), st.integers(1, 5))
def test_each_of_several_threads_makes_no_more_than_the_limit(values, operations, split_rows):
    table = pa.table({"x": pa.array(values, pa.int64())})
    ours, theirs = Fans(), Fans()
    pipeline = Pipeline.of_table(table, split_rows=split_rows).parallel(3)
    result = pipeline_of(pipeline, operations, ours).collect()
    expected = list(model_of(iter(values), operations, Fans()))
    assert result["x"].to_pylist() == expected
    *before, (_, rows, skip) = operations
    for start in range(0, len(values), split_rows):
        part = iter(values[start : start + split_rows])
        list(taken(model_of(part, before, theirs), rows + skip))
    assert ours.made <= theirs.made
    assert ours.closed == ours.begun


@pytest.mark.parametrize("threads", [1, 2])
def test_a_reader_that_stops_closes_the_generators_at_once(threads):
    fans = Fans()
    table = pa.table({"x": range(40)})
    pipeline = Pipeline.of_table(table, split_rows=4).parallel(threads)
    with closing(pipeline.flat_map(fans.of_batch(0, None), SCHEMA).batches()) as reader:
        assert next(reader)["x"].to_pylist() == [0]
        if threads == 1:
            assert fans.made == {0: 1}
    assert fans.begun[0] >= 1
    assert fans.closed == fans.begun
    assert not [each for each in threading.enumerate() if each.name.startswith("splitjoin")]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_generator_is_closed_when_an_operation_behind_it_raises(threads):
    fans = Fans()

    def fails(x):
        if len(x) and x[0].as_py() == 2:
            raise ZeroDivisionError
        return x

    table = pa.table({"x": [0, 0]})
    pipeline = Pipeline.of_table(table, split_rows=1).parallel(threads)
    pipeline = pipeline.flat_map(fans.of_batch(0, None), SCHEMA).map("x", fails).limit(50)
    with pytest.raises(ZeroDivisionError):
        pipeline.collect()
    assert fans.closed == fans.begun


def test_a_part_that_finds_nothing_stops_when_the_others_have_found_enough():
    """The second part makes rows for ever, none of which passes the filter."""
    fans = Fans()
    table = pa.table({"x": [10**6, -(10**12)]})
    pipeline = Pipeline.of_table(table, split_rows=1).parallel(2)
    kept = pipeline.flat_map(fans.of_batch(0, None), SCHEMA).filter(lambda x: pc.greater(x, 0))
    assert kept.limit(3).collect()["x"].to_pylist() == [10**6, 10**6 + 1, 10**6 + 2]
    assert fans.closed == fans.begun


def test_a_source_is_asked_for_no_more_than_the_limit():
    asked, closed = [], []

    def supply():
        try:
            for number in count():
                asked.append(number)
                yield one(number)
        finally:
            closed.append(True)

    pipeline = Pipeline.of_batches(supply, SCHEMA).map("x", lambda x: pc.add(x, 1))
    assert pipeline.limit(3).collect()["x"].to_pylist() == [1, 2, 3]
    assert (asked, closed) == ([0, 1, 2], [True])


@pytest.mark.parametrize("end", ["first", "any_match"])
def test_a_terminal_operation_that_knows_enough_asks_for_no_more(end):
    asked, closed = [], []

    def supply():
        try:
            for number in count():
                asked.append(number)
                yield one(number)
        finally:
            closed.append(True)

    odd = Pipeline.of_batches(supply, SCHEMA).filter(lambda x: pc.equal(pc.bit_wise_and(x, 1), 1))
    if end == "first":
        assert odd.first() == {"x": 1}
    else:
        assert odd.any_match(lambda x: pc.less(x, 2))
    assert (asked, closed) == ([0, 1], [True])
    none = Pipeline.of_table(pa.table({"x": [1, None]}))
    assert not none.any_match(lambda x: pc.greater(x, 1))
    assert none.limit(0).first() is None


@dataclass(frozen=True)
class FirstOf(Chained):
    """Keep the first row, as an operation from outside of the kit would."""

    flags: Flag

    def effect(self, traits):
        return Effect(inject=self.flags, clear=Flag.SIZED)

    def decide(self, place):
        return Decision([(Limit(), LimitParams(rows=1))], "only the first row is wanted")


@pytest.mark.parametrize("flags", [Flag.SHORT_CIRCUIT, Flag.NONE], ids=str)
def test_the_flag_decides_whether_batches_are_pulled_or_pushed(flags):
    fans = Fans()
    pipeline = Pipeline.of_table(pa.table({"x": [0]})).flat_map(fans.of_batch(0, 50), SCHEMA)
    assert pipeline.then(FirstOf(flags)).collect()["x"].to_pylist() == [0]
    assert fans.made[0] == (1 if flags is Flag.SHORT_CIRCUIT else 50)
    assert fans.closed == fans.begun


def test_a_function_that_does_not_return_is_an_error_and_no_hang(monkeypatch):
    monkeypatch.setattr(parallel, "_STOP_SECONDS", 0.3)
    entered, gate = threading.Event(), threading.Event()

    def fan(batch):
        if batch["x"][0].as_py():
            entered.set()
            assert gate.wait(60)
        else:
            assert entered.wait(60)
        yield batch

    table = pa.table({"x": [0, 1]})
    pipeline = Pipeline.of_table(table, split_rows=1).parallel(2).flat_map(fan, SCHEMA)
    with pytest.raises(FailureError, match="1 of 2 threads of a parallel pipeline did not stop"):
        pipeline.limit(1).collect()
    gate.set()


def test_a_program_ends_although_a_reader_has_not_been_closed(root):
    script = """
from itertools import repeat
import pyarrow as pa
from host.pipeline import Pipeline

table = pa.table({"x": range(8)})
reader = Pipeline.of_table(table, split_rows=1).parallel(2).flat_map(repeat, table.schema).batches()
next(reader)
kept = [reader]
kept.append(kept)
"""
    subprocess.run([sys.executable, "-c", script], cwd=root, timeout=60, check=True)
