# SPDX-License-Identifier: Apache-2.0
"""A region with an index, driven as the ingress would, against a list of tuples."""

from itertools import pairwise
import random

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from hdl.index.chain_walker import ChainWalker
from hdl.parameters import KeyField
from hdl.region import Region
from hdl.words.results import ResultKind
from tests.hdl.cells_model import Part
from tests.hdl.hostile_column import HostileColumn
from tests.hdl.input_words import control_word
from tests.hdl.region_model import (
    HIGH,
    LOW,
    Model,
    drive,
    feed,
    region_parameters,
    sorted_groups,
    within,
)

#: Of a field of six bits: everything in one bucket, cells of one value, cells of four.
PARTS = {"one": Part(), "narrow": Part(0, 6, 0), "wide": Part(2, 3, 1), "few": Part(1, 2, 0)}


def index_parameters(**changes):
    """Parameters of a small index."""
    return region_parameters(engine="index", **changes)


def equal(r, s):
    """The predicate of an equality."""
    return r == s


def check(model, **options):
    """The region answers like the model, but for the order inside a group."""
    assert sorted_groups(drive(model, **options)) == sorted_groups(model.answers)


@settings(max_examples=3)
@given(
    probes=st.sampled_from([1, 2, 3, 5, 40]),
    cores=st.sampled_from([1, 2, 3]),
    sub_window=st.sampled_from([1, 3, 6, 11, 70]),
    bucket_bits=st.sampled_from([1, 3, 6]),
    part=st.sampled_from(list(PARTS)),
    probe_side=st.integers(0, 1),
    stalls=st.sampled_from([0.0, 0.3]),
    data=st.data(),
)
def test_a_region_answers_like_a_list(
    probes, cores, sub_window, bucket_bits, part, probe_side, stalls, data
):
    parameters = index_parameters(
        probes=probes, cores=cores, sub_window=sub_window, bucket_bits=bucket_bits,
        probe_bits=4 if probes < 16 else 6,
    )  # fmt: skip
    part = PARTS[part]
    width = min(part.width, bucket_bits)
    part = Part(part.shift, width, min(part.place, bucket_bits - width))
    size = data.draw(st.integers(1, parameters.capacity))
    position = data.draw(st.integers(0, cores - 1))
    model = Model(parameters, probe_side, position, size, parts=(part,))
    spread = data.draw(st.sampled_from([0, 4, 31]))
    tuples = st.tuples(st.integers(0, 1), st.integers(-spread, spread))
    events = st.one_of(tuples, tuples, tuples, st.sampled_from(["FLUSH", "WINDOW", "CLEAR"]))
    feed(model, data.draw(st.lists(events, max_size=70)))
    check(model, stalls=stalls)


@pytest.mark.long
@settings(max_examples=3)
@given(
    distinct=st.booleans(),
    bucket_bits=st.sampled_from([1, 4]),
    probe_side=st.integers(0, 1),
    data=st.data(),
)
def test_equality_and_distinct_keys(distinct, bucket_bits, probe_side, data):
    """A walk that ends with its first match finds it all the same."""
    parameters = index_parameters(
        comparator="equality", bucket_bits=bucket_bits, sub_window=16, probes=3, cores=1,
    )  # fmt: skip
    model = Model(parameters, probe_side, 0, 16, matches=equal)
    if distinct:
        model.send(control_word("DISTINCT", 1 - probe_side, 1))
    numbers = iter(range(-32, 1000))
    events = []
    for side in data.draw(st.lists(st.integers(0, 1), max_size=60)):
        key = data.draw(st.integers(-32, 31))
        if side != probe_side and distinct:
            key = (next(numbers) + 32) % 64 - 32
        events.append((side, key))
    feed(model, events)
    check(model)


@pytest.mark.parametrize("bucket_bits", [1, pytest.param(6, marks=pytest.mark.long)])
def test_nothing_is_relied_upon_that_is_written_while_it_is_read(monkeypatch, bucket_bits):
    for module in ("index.heads", "index.results", "index.probe_table", "memory.columns"):
        monkeypatch.setattr(f"hdl.{module}.KeyColumn", HostileColumn)
    generator = random.Random(bucket_bits)
    for comparator, matches in [("band", within), ("equality", equal)]:
        parameters = index_parameters(
            comparator=comparator, bucket_bits=bucket_bits, sub_window=6, probes=3, cores=1,
        )  # fmt: skip
        model = Model(parameters, 0, 0, 6, matches=matches)
        feed(model, [(generator.randrange(2), generator.randrange(-4, 4)) for _ in range(150)])
        check(model)


def test_distinct_keys_end_a_walk_early():
    """Fewer entries are read where the newest of a chain is the match."""
    read = {}
    for distinct in (0, 1):
        parameters = index_parameters(
            comparator="equality", bucket_bits=1, sub_window=32, probes=4, cores=1,
        )  # fmt: skip
        model = Model(parameters, 0, 0, 32, matches=equal)
        model.send(control_word("DISTINCT", 1, distinct))
        feed(model, [*((1, n - 16) for n in range(32)), *[(0, 15)] * 8])
        activity = {}
        check(model, activity=activity)
        read[distinct] = activity["busy"]
    assert read[1] == 8
    assert read[0] >= 8 * 10


@settings(max_examples=3)
@given(
    probes=st.sampled_from([1, 2, 4, 40]),
    groups=st.sampled_from([2, 3, 9]),
    part=st.sampled_from(list(PARTS)),
    probe_side=st.integers(0, 1),
    stalls=st.sampled_from([0.0, 0.3]),
    data=st.data(),
)
def test_groups_without_a_star_between_them(probes, groups, part, probe_side, stalls, data):
    """Results come in any order up to the star, and tell the probe by its number since the last."""
    parameters = index_parameters(
        probes=probes, cores=1, sub_window=24, bucket_bits=6, probe_bits=9
    )
    model = Model(parameters, probe_side, 0, 24, parts=(PARTS[part],), groups=groups)
    spread = data.draw(st.sampled_from([0, 4, 31]))
    tuples = st.tuples(st.integers(0, 1), st.integers(-spread, spread))
    events = st.one_of(*[tuples] * 8, st.sampled_from(["FLUSH", "WINDOW", "CLEAR"]))
    feed(model, data.draw(st.lists(events, min_size=20, max_size=150)))
    check(model, stalls=stalls)


@pytest.mark.long
def test_a_long_walk_keeps_no_other_group_back_up_to_the_star():
    """One probe of every group has a chain of 120 entries; the other one has none."""
    parameters = index_parameters(
        comparator="equality", cores=1, sub_window=120, probes=2, probe_bits=8
    )
    busy = {}
    for groups in (1, 20):
        model = Model(parameters, 0, 0, 120, matches=equal, groups=groups)
        feed(model, [*((1, 20) for _ in range(120)), *((0, 20 * (n % 2)) for n in range(40))])
        activity, sent, taken = {}, [], []
        check(model, activity=activity, stamps=(sent, taken))
        busy[groups] = activity["busy"] / (taken[-1] - sent[120 + 2])
    assert busy[20] >= 0.9
    assert busy[1] <= 2 / ChainWalker.CIRCLE


@pytest.mark.long
@pytest.mark.parametrize(
    ("burst", "part"),
    [
        (64, next(iter(PARTS))),
        *(pytest.param(64, part, marks=pytest.mark.long) for part in list(PARTS)[1:]),
        *(pytest.param(256, part, marks=pytest.mark.long) for part in PARTS),
    ],
)
def test_bursts_of_stores_never_overwrite_what_a_probe_still_needs(burst, part):
    """With a fifth of the keys hot: without its guard the ring survives all but these."""
    parameters = index_parameters(cores=1, sub_window=16, probes=4)
    model = Model(parameters, 0, 0, 16, parts=(PARTS[part],) if part != "narrow" else (Part(),))
    feed(model, [(n // burst % 2, 0 if n % 5 == 0 else 30) for n in range(4 * burst)])
    check(model, stalls=0.2)


@pytest.mark.long
def test_groups_without_probes_end_while_walks_are_stuck():
    """Their ends take a place among the walks, which wait for results that nobody takes."""
    parameters = index_parameters(cores=1, sub_window=32, probes=4, bucket_bits=6, probe_bits=6)
    model = Model(parameters, 0, 0, 32, parts=(PARTS["few"],))
    feed(model, [(1, 16 + n * 5 % 9) for n in range(32)])
    for n in range(8):
        feed(model, [(0, 18 + (n + m) % 5) for m in range(3)])
        for _ in range(4):
            model.flush()
    check(model, stalls=0.9)


@pytest.mark.parametrize(
    "keys",
    ["alternating", *(pytest.param(k, marks=pytest.mark.long) for k in ("equal", "extremes"))],
)
def test_chains_of_all_kinds(keys):
    """Ring and ordinals wrap around many times while probes walk."""
    values = {"equal": [7], "alternating": [7, -8], "extremes": [-32, 31, -31]}[keys]
    parameters = index_parameters(cores=1, sub_window=13, probes=2, bucket_bits=2)
    model = Model(parameters, 1, 0, 13, parts=(Part(1, 2, 0),))
    feed(model, [(n % 3 == 0, values[n % len(values)]) for n in range(300)])
    check(model)


@pytest.mark.long
def test_long_chains_are_read_at_an_entry_per_cycle():
    parameters = index_parameters(cores=1, sub_window=200, probes=8, bucket_bits=1)
    model = Model(parameters, 0, 0, 200, parts=(Part(),))
    feed(model, [*((1, 20) for _ in range(200)), *((0, -20) for _ in range(24))])
    activity, sent, taken = {}, [], []
    check(model, activity=activity, stamps=(sent, taken))
    assert activity["comparisons"] == activity["busy"] == 24 * 200
    assert activity["busy"] >= 0.95 * (taken[-1] - sent[200 + 2])


def test_a_tuple_per_cycle_at_one_entry_per_bucket():
    parameters = index_parameters(
        comparator="equality", cores=1, sub_window=64, probes=4,
        keys=(KeyField(name="x", bits=8),),
    )  # fmt: skip
    model = Model(parameters, 0, 0, 64, matches=equal)
    model.words.pop()  # that is the window after reset
    for n in range(400):
        model.tuple(n % 2, (n * 37 % 64) - 32)
    sent = []
    drive(model, stamps=(sent, []))
    assert sent[-1] - sent[0] <= 1.01 * len(sent)


@pytest.mark.parametrize("found", [False, True])
def test_latency_of_a_lone_probe(found):
    parameters = index_parameters(cores=1, sub_window=8, bucket_bits=6)
    model = Model(parameters, 0, 0, 8, parts=(Part(0, 6, 0),))
    for n in range(4 if found else 0):
        model.tuple(1, 20 + n)
    for _ in range(30):
        model.send(control_word("BOUND_LOW", 0, LOW))
    model.tuple(0, 20 + LOW)
    sent, taken = [], []
    drive(model, stamps=(sent, taken))
    dut = Region(parameters, probe_side=0)
    cells = HIGH - LOW + 1
    expected = dut.latency + cells // 2 - 1  # neighbours are visited at once
    if found:  # the last cell it visits holds the match
        expected += 3 + ChainWalker.CIRCLE
        assert len(taken) == 2
    assert taken[-1] - sent[-1] == expected


@pytest.mark.long
def test_results_of_groups_do_not_mix():
    """A group of long walks, then one of short ones: the star of the first comes first."""
    parameters = index_parameters(cores=1, sub_window=40, probes=2, bucket_bits=3)
    model = Model(parameters, 0, 0, 40, parts=(Part(3, 3, 0),))
    for n in range(40):
        model.tuple(1, 0 if n % 2 else 24 + n % 8)
    for n in range(40):
        model.tuple(0, 0 if n % 4 < 2 else 28)
    model.flush()
    answers = drive(model, stalls=0.3)
    assert sorted_groups(answers) == sorted_groups(model.answers)
    stars = [n for n, answer in enumerate(answers) if answer[0] == ResultKind.STAR]
    assert len(stars) == 20
    assert min(b - a for a, b in pairwise(stars)) > 1
