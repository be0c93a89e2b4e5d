# SPDX-License-Identifier: Apache-2.0
"""Regions whose windows are in external memory, against lists, in a memory that is no help."""

from itertools import pairwise
import random

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from hdl.region import Region
from tests.halves import half
from tests.hdl.axi_memory import AxiMemory
from tests.hdl.external.shapes import external_parameters
from tests.hdl.input_words import control_word
from tests.hdl.region_model import LOW, Model, drive, feed


def hostile(seed, stalls, latency):
    """A memory that answers after any number of cycles up to ``latency``."""
    generator = random.Random(seed)

    def memory(axi):
        return AxiMemory(
            axi, latency=lambda: generator.randint(1, latency), stalls=stalls, seed=seed
        )

    return memory


@settings(max_examples=4)
@given(
    lanes=st.sampled_from([1, 2, 3, 4]),
    probes=st.sampled_from([1, 2, 3, 5]),
    cores=st.sampled_from([1, 2, 3]),
    sub_window=st.sampled_from([1, 3, 6, 11, 70]),
    burst=st.sampled_from([1, 2, 4, 16]),
    latency=st.sampled_from([1, 7, 60]),
    probe_side=st.integers(0, 1),
    stalls=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 1 << 16),
    data=st.data(),
)
def test_a_region_answers_like_a_list(
    lanes, probes, cores, sub_window, burst, latency, probe_side, stalls, seed, data
):
    parameters = external_parameters(
        lanes=lanes, probes=probes, cores=cores, sub_window=sub_window, memory_burst=burst,
        memory_latency=data.draw(st.sampled_from([0, latency])),
    )  # fmt: skip
    size = data.draw(st.integers(1, parameters.capacity))
    position = data.draw(st.integers(0, cores - 1))
    model = Model(parameters, probe_side, position, size)
    generator = random.Random(seed)
    events = []
    for _ in range(generator.randrange(6)):
        side = generator.randrange(2)
        burst_of = generator.choice([1, 5, 40])
        events += [
            (side if generator.random() < 0.9 else 1 - side, generator.randint(-4, 4))
            for _ in range(burst_of)
        ]
        events.append(generator.choice(["FLUSH", "WINDOW", "CLEAR", (0, 0), (1, 0)]))
    feed(model, events)
    activity = {}
    memory = hostile(seed, stalls, latency)
    found = drive(model, stalls=stalls, seed=seed, activity=activity, memory=memory)
    assert found == model.answers
    assert activity["comparisons"] == model.comparisons


@pytest.mark.long
@pytest.mark.parametrize(("burst", "lanes"), [(4, 1), pytest.param(8, 3, marks=pytest.mark.long)])
def test_rows_are_read_from_memory_and_copied_in_one_pass(burst, lanes):
    """Stores go on between groups, so every pass ends among rows that are not written yet."""
    parameters = external_parameters(
        cores=1, sub_window=60 * lanes, probes=2, lanes=lanes, memory_burst=burst,
        memory_latency=20,
    )  # fmt: skip
    model = Model(parameters, 0, 0, 60 * lanes)
    generator = random.Random(burst)
    stored = 0
    for n in range(200 * lanes):
        model.tuple(1, generator.randint(-20, 20))
        stored += 1
        if n > 60 * lanes and stored >= 3:
            model.tuple(0, generator.randint(-20, 20))
            stored = generator.choice([0, 1, 2, 3])
    model.flush()
    behind = []

    def memory(axi):
        behind.append(hostile(7, 0.1, 30)(axi))
        return behind[0]

    activity = {}
    assert drive(model, activity=activity, memory=memory) == model.answers
    assert activity["comparisons"] == model.comparisons
    read = sum(beats for _, beats in behind[0].reads)
    assert activity["busy"] / 3 < read < activity["busy"]
    assert {beats for _, beats in behind[0].writes} == {burst}
    assert any(beats == burst for _, beats in behind[0].reads)


@pytest.mark.parametrize(("op", "latency"), half(["CLEAR", "WINDOW"], [40, 1], of=3))
def test_a_new_window_begins_behind_the_writes_of_the_old_one(op, latency):
    """A write that came late would overwrite the first rows of the new window."""
    parameters = external_parameters(cores=1, sub_window=100, probes=2, memory_burst=4)
    model = Model(parameters, 0, 0, 100)
    for n in range(6):
        for k in range(40 + n):
            model.tuple(1, (k + n) % 7)
        model.begin(op)
        for k in range(20 + n):
            model.tuple(1, 20 + (k + n) % 7)
        for _ in range(4):
            model.tuple(0, 22)
    model.flush()
    assert drive(model, memory=lambda axi: AxiMemory(axi, latency=latency)) == model.answers


@pytest.mark.long
@pytest.mark.parametrize("latency", [pytest.param(32, marks=pytest.mark.long), 64])
def test_passes_follow_each_other_as_if_the_rows_were_on_the_chip(latency):
    """A pass costs a cycle per row while the latency is one that was asked for."""
    rows = 200
    parameters = external_parameters(
        cores=1, sub_window=2 * rows, lanes=2, probes=3, memory_burst=16, memory_latency=64
    )
    model = Model(parameters, 0, 0, 2 * rows)
    for _ in range(2 * rows):
        model.tuple(1, 20)
    for _ in range(5 * 3):
        model.tuple(0, 0)
    sent, taken = [], []
    found = drive(model, stamps=(sent, taken), memory=lambda axi: AxiMemory(axi, latency=latency))
    assert found == model.answers
    apart = [b - a for a, b in pairwise(taken)]
    assert all(rows <= cycles <= rows + 4 for cycles in apart[1:]), apart


@pytest.mark.few(1)
@pytest.mark.parametrize(("lanes", "rows", "latency"), [(1, 40, 1), (3, 50, 9)])
def test_latency_of_a_lone_probe(lanes, rows, latency):
    """All rows that fill bursts come from memory here."""
    parameters = external_parameters(
        cores=1, sub_window=rows * lanes, lanes=lanes, memory_burst=2, memory_latency=16
    )
    model = Model(parameters, 0, 0, parameters.capacity)
    model.words.pop()  # that is the window after reset
    for _ in range(rows * lanes):
        model.tuple(1, 20)
    for _ in range(100):
        model.send(control_word("BOUND_LOW", 0, LOW))  # all is written meanwhile
    model.tuple(0, 1)
    sent, taken = [], []
    drive(model, stamps=(sent, taken), memory=lambda axi: AxiMemory(axi, latency=latency))
    dut = Region(parameters, probe_side=0)
    assert taken[0] - sent[-1] == dut.latency + rows + latency


@pytest.mark.long
@pytest.mark.parametrize("burst", [1, 8])
def test_bursts_of_stores_never_overwrite_what_a_probe_still_needs(burst):
    parameters = external_parameters(
        cores=1, sub_window=40, probes=4, memory_burst=burst, memory_latency=0
    )
    model = Model(parameters, 0, 0, 40)
    stored = 0
    for n in range(320):
        side = n // 80 % 2
        model.tuple(side, 0 if n % 5 == 0 else 30)  # hot keys
        stored = stored + 1 if side and model.group else 0
        if stored == parameters.slack:
            model.flush()
            stored = 0
    model.flush()
    assert drive(model, stalls=0.2, memory=hostile(3, 0.2, 50)) == model.answers


def test_stores_wait_for_a_memory_that_is_too_slow_for_them():
    """More rows are stored at once than the chip holds, and a probe comes right behind them."""
    parameters = external_parameters(
        cores=1, sub_window=100, probes=2, memory_burst=2, memory_latency=0
    )
    assert parameters.engine.recent_rows < 90
    model = Model(parameters, 0, 0, 100)
    for n in range(90):
        model.tuple(1, n % 20)
    for _ in range(2):
        model.tuple(0, 3)
    model.flush()
    assert drive(model, memory=lambda axi: AxiMemory(axi, latency=200)) == model.answers
