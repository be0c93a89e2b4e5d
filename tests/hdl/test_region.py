# SPDX-License-Identifier: Apache-2.0
"""A region alone, driven as the ingress would, against a list of tuples."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from hdl.layouts import ResultKind, node_result
from hdl.parameters import JoinParameters, KeyField
from hdl.region import Region
from tests.hdl.input_words import control_word, region_input, tuple_word
from tests.hdl.stream_bench import StreamBench

LOW, HIGH = -2, 1


def region_parameters(**changes):
    """Parameters of a small accelerator."""
    values = {"keys": (KeyField(name="x", bits=6),), "sub_window": 6, "probe_bits": 4, **changes}
    return JoinParameters(**values)


def drive(parameters, probe_side, position, words, count, *, stalls=0.0, seed=0, stamps=None):
    """Send words to a region; return its results as layout constants."""
    dut = Region(parameters, probe_side=probe_side)
    bench = StreamBench(dut, deadline=30_000, stalls=stalls, seed=seed)

    async def place(ctx):
        ctx.set(dut.position, position)

    bench.simulator.add_testbench(place, background=True)
    bench.source(dut.words, words, stamps=stamps and stamps[0])
    received = bench.sink(dut.results, count, stamps=stamps and stamps[1])
    bench.run(extra_cycles=40)
    return [node_result(parameters, 0).from_bits(word) for word in received]


class Model:
    """What a region answers: lists instead of rings."""

    def __init__(self, parameters, probe_side, position, size):
        self.parameters = parameters
        self.probe_side = probe_side
        self.position = position
        self.size = size
        self.window = []  # (local number, key), None for tuples that other cores store
        self.seen = 0
        self.group = []
        self.words = [
            region_input(parameters, control_word("BOUND_LOW", 0, LOW)),
            region_input(parameters, control_word("BOUND_HIGH", 0, HIGH)),
            region_input(parameters, control_word("WINDOW", 1 - probe_side, size)),
        ]
        self.answers = []

    def tuple(self, side, key):
        """Store or probe; close the group when it is full."""
        bit = 1 << self.probe_side
        close = 0
        if side == self.probe_side:
            self.group.append((key, [entry for entry in self.window if entry]))
            close = bit if len(self.group) == self.parameters.probes else 0
        self.words.append(
            region_input(self.parameters, tuple_word(side, {"x": key}), close=close, star=close)
        )
        if close:
            self.close(star=True)
        if side != self.probe_side:
            mine = self.seen % self.parameters.cores == self.position
            self.window.append((self.seen // self.parameters.cores, key) if mine else None)
            self.window = self.window[-self.size :]
            self.seen += 1

    def flush(self):
        """End the open group."""
        star = 3 if self.group else 0
        self.words.append(region_input(self.parameters, control_word("FLUSH"), close=3, star=star))
        self.close(star=bool(star))
        self.answers.append((ResultKind.MARK,))

    def close(self, *, star):
        """Answer the group: by stored tuple, then by probe."""
        lanes, rows = self.parameters.lanes, self.parameters.ring_rows
        pairs = []
        for n, (key, window) in enumerate(self.group):
            for local, stored in window:
                r, s = (stored, key) if self.probe_side else (key, stored)
                if LOW <= r - s <= HIGH:
                    pairs.append((local, n))
        self.answers += [
            (ResultKind.PAIR, n, local % lanes, local // lanes % rows) for local, n in sorted(pairs)
        ]
        if star:
            self.answers.append((ResultKind.STAR,))
        self.group = []


def as_tuple(word):
    """What a word says."""
    if word.kind == ResultKind.PAIR:
        pair = word.body.pair
        return word.kind, pair.probe, pair.lane, pair.row
    return (word.kind,)


@settings(max_examples=60)
@given(
    lanes=st.sampled_from([1, 2, 3]),
    probes=st.sampled_from([1, 2, 3, 5]),
    cores=st.sampled_from([1, 2, 3]),
    sub_window=st.sampled_from([1, 3, 6, 11]),
    probe_side=st.integers(0, 1),
    stalls=st.sampled_from([0.0, 0.3]),
    data=st.data(),
)
def test_a_region_answers_like_a_list(lanes, probes, cores, sub_window, probe_side, stalls, data):
    parameters = region_parameters(lanes=lanes, probes=probes, cores=cores, sub_window=sub_window)
    size = data.draw(st.integers(1, parameters.capacity))
    position = data.draw(st.integers(0, cores - 1))
    model = Model(parameters, probe_side, position, size)
    stored = 0
    for side, key in data.draw(
        st.lists(st.tuples(st.integers(0, 1), st.integers(-4, 4)), max_size=60)
    ):
        model.tuple(side, key)
        # The ingress ends a group before the ring's slack is used up; so does this.
        stored = stored + 1 if side != probe_side and model.group else 0
        if stored == cores * parameters.slack:
            model.flush()
            stored = 0
    model.flush()
    words = drive(parameters, probe_side, position, model.words, len(model.answers), stalls=stalls)
    assert [as_tuple(word) for word in words] == model.answers


@pytest.mark.parametrize("lanes", [1, 2, 3])
@pytest.mark.parametrize("probes", [1, 3])
@pytest.mark.parametrize("rows", [2, 5, 16])
def test_passes_follow_each_other_without_an_idle_cycle(lanes, probes, rows):
    parameters = region_parameters(cores=1, sub_window=rows * lanes, lanes=lanes, probes=probes)
    model = Model(parameters, 0, 0, rows * lanes)
    for _ in range(rows * lanes):
        model.tuple(1, 20)
    for _ in range(12 * probes):
        model.tuple(0, -20)
    sent, taken = [], []
    drive(parameters, 0, 0, model.words, 12, stamps=(sent, taken))
    assert {b - a for a, b in pairwise(taken)} == {max(rows, probes + 2)}


@pytest.mark.parametrize("rows", [0, 1, 2, 9])
def test_latency_of_a_lone_probe(rows):
    parameters = region_parameters(cores=1, sub_window=9)
    model = Model(parameters, 0, 0, 9)
    for _ in range(rows):
        model.tuple(1, 20)
    model.tuple(0, 1)
    sent, taken = [], []
    drive(parameters, 0, 0, model.words, 1, stamps=(sent, taken))
    dut = Region(parameters, probe_side=0)
    assert taken[0] - sent[-1] == dut.latency + max(rows, 1)


@pytest.mark.parametrize("burst", [64, 256])
def test_bursts_of_stores_never_overwrite_what_a_probe_still_needs(burst):
    parameters = region_parameters(cores=1, sub_window=16, probes=4, lanes=1)
    model = Model(parameters, 0, 0, 16)
    stored = 0
    for n in range(4 * burst):
        side = n // burst % 2
        model.tuple(side, 0 if n % 5 == 0 else 30)  # hot keys
        stored = stored + 1 if side and model.group else 0
        if stored == parameters.slack:
            model.flush()
            stored = 0
    model.flush()
    words = drive(parameters, 0, 0, model.words, len(model.answers), stalls=0.2)
    assert [as_tuple(word) for word in words] == model.answers
