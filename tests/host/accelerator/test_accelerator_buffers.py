# SPDX-License-Identifier: Apache-2.0
"""Rooms for result words are asked from the governor, and the answer does not depend on them."""

import numpy as np
import pyarrow as pa
import pytest

from host import CountWindow, open_device
from host.accelerator import stream
from host.accelerator.stream import LEAST_RESULT_WORDS
from host.pipeline import Pipeline
from host.query.join_query import JoinQuery, Term
from host.runtime import BUFFER_BYTES, Governor, Quantity, Requirements


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(5)
    return [
        pa.table({"t": np.arange(6_000) * 2 + side, "x": rng.integers(0, 40, 6_000)})
        for side in (0, 1)
    ]


def joined(tables, governor, monkeypatch):
    """Return the answer of a join, and the result words that each of its exchanges could move."""
    seen = []

    class Watched(stream.Execution):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            seen.extend(len(room) for room in self._rooms)

    monkeypatch.setattr(stream, "Execution", Watched)
    query = JoinQuery(
        terms=(Term("x", "x"),), order=("t", "t"), window=CountWindow(100), sorted=True
    )
    left, right = (Pipeline.of_table(table, sorted_by=["t"]) for table in tables)
    with open_device("software:") as device:
        pipeline = left.join(right, query, device).governed_by(governor)
        return pipeline.collect(), seen


def test_an_exchange_moves_as_many_words_as_buffers_are_granted(tables, monkeypatch):
    governor = Governor()
    answer, rooms = joined(tables, governor, monkeypatch)
    assert answer.num_rows > 2 * LEAST_RESULT_WORDS
    assert rooms == [1 << 16] * 2
    assert governor.available == governor.budget
    # Two rooms of numbers of 64 bits fill one buffer. Without any, the rooms are small.
    assert 2 * 8 * rooms[0] == BUFFER_BYTES
    for buffers, words in ((1, 1 << 16), (0, LEAST_RESULT_WORDS)):
        again, rooms = joined(tables, Governor(Quantity(threads=4, buffers=buffers)), monkeypatch)
        assert rooms == [words] * 2
        assert again == answer


def test_two_joins_share_what_there_is(tables, monkeypatch):
    """Another graph that holds all buffers leaves a join none, and the join runs."""
    governor = Governor(Quantity(threads=4, buffers=3))
    wanted = Requirements(Quantity(buffers=3), Quantity(buffers=3))
    with governor.lending("another graph", wanted):
        _, rooms = joined(tables, governor, monkeypatch)
    assert rooms == [LEAST_RESULT_WORDS] * 2
    assert joined(tables, governor, monkeypatch)[1] == [1 << 16] * 2
