# SPDX-License-Identifier: Apache-2.0
"""Rooms for words are asked of the governor, and the answer does not depend on them."""

import numpy as np
import pyarrow as pa
import pytest

from host import open_device
from host.devices import Device
from host.devices.software import SOFTWARE_MANIFEST
from host.pipeline import Pipeline
from host.protocol.manifest import Manifest
from host.query.queries import Query
from host.runtime import BUFFER_BYTES, Governor, Quantity, Requirements
from host.session.join import LEAST_RESULT_WORDS, LEAST_STAGED_WORDS


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(5)
    return [
        pa.table({"t": np.arange(6_000) * 2 + side, "x": rng.integers(0, 40, 6_000)})
        for side in (0, 1)
    ]


QUERY = Query(on="x", time="t", rows=100, sorted=True)


class Slow(Device):
    """A device that takes few words at a time, and knows the rooms and areas that it is given."""

    def __init__(self, inner, words):
        self.inner, self.words = inner, words
        self.uri, self.manifest = f"slow({inner.uri})", inner.manifest
        self.rooms, self.areas = set(), []

    def exchange(self, words, results, *, cycles, stamps=None):
        self.rooms.add(len(results))
        self.areas.append(len(words if words.base is None else words.base))
        return self.inner.exchange(words[: self.words], results, cycles=cycles, stamps=stamps)

    def counters(self):
        return self.inner.counters()

    def close(self):
        self.inner.close()


def joined(tables, governor, *, words=1 << 16):
    """Return the answer of a join, what its rooms for results hold, and its areas in turn.

    The device takes ``words`` input words at a time.
    """
    left, right = (Pipeline.of_table(table, sorted_by=["t"]) for table in tables)
    with Slow(open_device("software:"), words) as device:
        pipeline = left.join(right, QUERY, device).governed_by(governor)
        return pipeline.collect(), device.rooms, device.areas


def test_an_exchange_moves_as_many_words_as_buffers_are_granted(tables):
    governor = Governor()
    answer, rooms, areas = joined(tables, governor)
    assert answer.num_rows > 2 * LEAST_RESULT_WORDS
    assert (rooms, set(areas)) == ({1 << 16}, {3 << 16})
    assert governor.available == governor.budget
    # Two rooms of numbers of 64 bits fill one buffer, and two areas of six numbers a word fill 18.
    assert 2 * 8 * max(rooms) == BUFFER_BYTES
    assert 2 * 8 * 6 * areas[0] == 18 * BUFFER_BYTES
    assert Manifest.load(SOFTWARE_MANIFEST).input_word.columns == 6
    for buffers, room, area in (
        (19, 1 << 16, 3 << 16),
        (7, 1 << 16, 1 << 16),
        (1, 1 << 16, LEAST_STAGED_WORDS),
        (0, LEAST_RESULT_WORDS, LEAST_STAGED_WORDS),
    ):
        budget = Quantity(threads=4, buffers=buffers)
        again, rooms, areas = joined(tables, Governor(budget))
        assert (rooms, set(areas)) == ({room}, {area})
        assert again == answer


def test_two_joins_share_what_there_is(tables):
    """Another graph that holds all buffers leaves a join none, and the join runs."""
    governor = Governor(Quantity(threads=4, buffers=64))
    wanted = Requirements(Quantity(buffers=64), Quantity(buffers=64))
    with governor.lending("another graph", wanted):
        _, rooms, areas = joined(tables, governor)
    assert (rooms, set(areas)) == ({LEAST_RESULT_WORDS}, {LEAST_STAGED_WORDS})
    _, rooms, areas = joined(tables, governor)
    assert (rooms, set(areas)) == ({1 << 16}, {3 << 16})


@pytest.mark.parametrize("batch", [300, 1 << 15])
def test_words_that_a_slow_device_does_not_take_need_no_more_room(batch):
    """The input has five times the words of an area, in batches that are small or long."""
    tables = [
        pa.table({"t": np.arange(30_000) * 2 + side, "x": np.arange(30_000)}) for side in (0, 1)
    ]
    answer, _, _ = joined(tables, Governor())
    tables = [pa.Table.from_batches(table.to_batches(max_chunksize=batch)) for table in tables]
    none = Governor(Quantity(threads=4, buffers=0))
    again, _, areas = joined(tables, none, words=500)
    assert set(areas) == {LEAST_STAGED_WORDS}
    assert len(areas) > 100
    assert again.to_pydict() == answer.to_pydict()
