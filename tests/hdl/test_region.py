# SPDX-License-Identifier: Apache-2.0
"""A region alone, driven as the ingress would, against a list of tuples."""

from itertools import pairwise
import random

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from hdl.region import Region
from tests.halves import half
from tests.hdl.hostile_column import HostileColumn
from tests.hdl.input_words import control_word
from tests.hdl.region_model import LOW, Model, drive, feed, region_parameters, within


def lopsided(r, s):
    """A custom predicate whose sides cannot be exchanged."""
    return r.x - s.x > 2


@settings(max_examples=3)
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
    events = st.one_of(
        st.tuples(st.integers(0, 1), st.integers(-4, 4)),
        st.tuples(st.integers(0, 1), st.integers(-4, 4)),
        st.tuples(st.integers(0, 1), st.integers(-4, 4)),
        st.sampled_from(["FLUSH", "WINDOW", "CLEAR"]),
    )
    feed(model, data.draw(st.lists(events, max_size=50)))
    activity = {}
    assert drive(model, stalls=stalls, activity=activity) == model.answers
    assert activity["comparisons"] == model.comparisons


def equal(r, s):
    """The predicate of digests."""
    return r == s


def digest_parameters(**changes):
    """Parameters of a region whose digests are so short that different keys share them."""
    return region_parameters(comparator="equality", **{"digest_bits": 2, **changes})


def events_among(keys):
    """Tuples for a region, many of them with ``keys`` that often match, and control words."""
    events = st.one_of(
        st.tuples(st.integers(0, 1), keys),
        st.tuples(st.integers(0, 1), st.integers(-32, 31)),
        st.sampled_from(["FLUSH", "WINDOW", "CLEAR"]),
    )
    return st.lists(events, max_size=60)


@settings(max_examples=3)
@given(
    digest_bits=st.sampled_from([1, 3, 5]),
    lanes=st.sampled_from([1, 2, 5]),
    probes=st.sampled_from([1, 2, 5]),
    cores=st.sampled_from([1, 2]),
    sub_window=st.sampled_from([1, 3, 11]),
    probe_side=st.integers(0, 1),
    stalls=st.sampled_from([0.0, 0.3, 0.9]),
    data=st.data(),
)
def test_with_digests_only_equal_keys_match(
    digest_bits, lanes, probes, cores, sub_window, probe_side, stalls, data
):
    parameters = digest_parameters(
        digest_bits=digest_bits, lanes=lanes, probes=probes, cores=cores, sub_window=sub_window
    )
    size = data.draw(st.integers(1, parameters.capacity))
    model = Model(parameters, probe_side, data.draw(st.integers(0, cores - 1)), size, matches=equal)
    few = st.lists(st.integers(-32, 31), min_size=1, max_size=6).flatmap(st.sampled_from)
    feed(model, data.draw(events_among(few)))
    activity = {}
    assert drive(model, stalls=stalls, activity=activity) == model.answers
    assert activity["comparisons"] == model.comparisons


@settings(max_examples=3)
@given(
    digest_bits=st.sampled_from([2, 3, 7]),
    shift=st.sampled_from([0, 1, 2, 2, 3, 6]),
    lanes=st.sampled_from([1, 2, 5]),
    probes=st.sampled_from([1, 2, 5]),
    cores=st.sampled_from([1, 2]),
    sub_window=st.sampled_from([1, 3, 11]),
    probe_side=st.integers(0, 1),
    stalls=st.sampled_from([0.0, 0.3, 0.9]),
    data=st.data(),
)
def test_with_digests_of_a_band_only_keys_in_range_match(
    digest_bits, shift, lanes, probes, cores, sub_window, probe_side, stalls, data
):
    """Whether the cells are as wide as the range, wider, or too narrow for it."""
    parameters = region_parameters(
        digest_bits=digest_bits, lanes=lanes, probes=probes, cores=cores, sub_window=sub_window
    )
    size = data.draw(st.integers(1, parameters.capacity))
    position = data.draw(st.integers(0, cores - 1))
    model = Model(parameters, probe_side, position, size, cells=((0, shift),))
    feed(model, data.draw(events_among(st.integers(-8, 8))))
    activity = {}
    assert drive(model, stalls=stalls, activity=activity) == model.answers
    assert activity["comparisons"] == model.comparisons


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("digests", "lanes", "probes", "sub_window"),
    half([False, True], [(1, 2, 6), (5, 3, 6), (3, 1, 11)], of=3),
)
def test_nothing_is_read_of_a_row_that_is_written_meanwhile(
    monkeypatch, digests, lanes, probes, sub_window
):
    monkeypatch.setattr("hdl.scan.ring.KeyColumn", HostileColumn)
    parameters = region_parameters(cores=1, sub_window=sub_window, lanes=lanes, probes=probes)
    if digests:
        parameters = parameters.with_(comparator="equality", digest_bits=3)
    generator = random.Random(lanes)
    for _ in range(2):
        model = Model(parameters, 0, 0, sub_window, matches=equal if digests else within)
        for _ in range(150):
            model.tuple(generator.randrange(2), generator.randrange(-3, 3))
        model.flush()
        assert drive(model) == model.answers


@pytest.mark.parametrize("lanes", [1, pytest.param(3, marks=pytest.mark.long)])
def test_more_passes_than_can_wait_to_be_verified(lanes):
    """Results that are refused for long hold short passes up, and stores that would overwrite."""
    parameters = digest_parameters(cores=1, sub_window=3, lanes=lanes, probes=1)
    model = Model(parameters, 0, 0, 3, matches=equal)
    for n in range(150):
        model.tuple(n % 3 == 0, n // 3 % 5)
    model.flush()
    for _ in range(60):
        model.flush()
    assert drive(model, stalls=0.95) == model.answers


@pytest.mark.few(1)
@pytest.mark.parametrize(("digests", "moved"), half([False, True], [18, 20, 24, 28, 31], of=3))
def test_a_pass_without_probes_that_has_to_wait_keeps_nothing_else_from_being_kept(digests, moved):
    """It is between two groups: the window of the later one must not be overwritten meanwhile."""
    changes = {"cores": 1, "sub_window": 8, "probes": 1}
    parameters = digest_parameters(**changes) if digests else region_parameters(**changes)
    model = Model(parameters, 0, 0, 8, matches=equal if digests else within)
    events = [(1, 0)] * 8
    events += [(0, 0)] * 2  # whose pairs fill the queue
    events += [(1, 0)] * moved
    events += ["FLUSH", (0, 0)]
    events += [(1, 20)] * 16
    feed(model, events)
    assert drive(model, begin=200) == model.answers


@pytest.mark.few(1)
@pytest.mark.parametrize("probe_side", [0, 1])
def test_a_custom_predicate_gets_r_and_s_in_this_order(probe_side):
    parameters = region_parameters(
        comparator="custom", predicate=f"{__name__}:lopsided", lanes=2, probes=2
    )
    model = Model(parameters, probe_side, 0, 6, matches=lambda r, s: r - s > 2)
    for n in range(60):
        model.tuple(n // 3 % 2, n * 7 % 11)
    model.flush()
    assert drive(model) == model.answers


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("digests", "lanes", "probes", "rows"),
    half([False, True], [1, 2, 3], [1, 3], [2, 5, 16], of=5),
)
def test_passes_follow_each_other_without_an_idle_cycle(digests, lanes, probes, rows):
    """Not even when digests agree as often as candidates can be verified."""
    parameters = region_parameters(cores=1, sub_window=rows * lanes, lanes=lanes, probes=probes)
    if digests:
        parameters = parameters.with_(comparator="equality", digest_bits=3)
    model = Model(parameters, 0, 0, rows * lanes, matches=equal if digests else within)
    alike = 0b1011 << 1  # as zero, as far as the digest tells
    for n in range(rows * lanes):
        candidate = n % lanes == lanes - 1 and n // lanes % probes == probes - 1
        model.tuple(1, alike if candidate else 5)
    for _ in range(12 * probes):
        model.tuple(0, 0)
    sent, taken, activity = [], [], {}
    drive(model, stamps=(sent, taken), activity=activity)
    assert {b - a for a, b in pairwise(taken)} == {max(rows, probes + 2)}
    assert activity == {
        "comparisons": 12 * probes * rows * lanes,
        "busy": 12 * rows,
        "stalled": 0,
    }


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("lanes", "probes", "rows"),
    half([1, 2, 3], [1, 3], [2, 5, 16], of=3),
)
def test_passes_of_a_band_follow_each_other_without_an_idle_cycle(lanes, probes, rows):
    """One cell agrees in as many rows as candidates can be verified."""
    parameters = region_parameters(
        cores=1, sub_window=rows * lanes, lanes=lanes, probes=probes, digest_bits=3
    )
    model = Model(parameters, 0, 0, rows * lanes)
    beside = 5  # out of range, in the second of the cells of zero, which are 4 values wide
    for n in range(rows * lanes):
        candidate = n % lanes == lanes - 1 and n // lanes % probes == probes - 1
        model.tuple(1, beside if candidate else 20)
    for _ in range(12 * probes):
        model.tuple(0, 0)
    sent, taken, activity = [], [], {}
    assert drive(model, stamps=(sent, taken), activity=activity) == model.answers
    assert {b - a for a, b in pairwise(taken)} == {max(rows, probes + 3)}
    assert activity == {
        "comparisons": 12 * probes * rows * lanes,
        "busy": 12 * rows,
        "stalled": 0,
    }


@pytest.mark.few(2)
@pytest.mark.parametrize("wide", [0, 1, 2])
def test_a_range_wider_than_its_cells_slows_down_its_own_pass_only(wide):
    """In its pass, each lane takes as many cycles as there are probes; in others, none does."""
    parameters = region_parameters(cores=1, sub_window=24, lanes=2, probes=3, digest_bits=4)
    model = Model(parameters, 0, 0, 24, cells=((0, 1),))
    for _ in range(24):
        model.tuple(1, 20)
    # The range of a probe is from one below it to two above it: two cells for one, three for zero.
    for group in range(12):
        for n in range(3):
            model.tuple(0, 0 if group == 5 and n == wide else 1)
    sent, taken = [], []
    assert drive(model, stamps=(sent, taken)) == model.answers
    apart = [b - a for a, b in pairwise(taken)]
    assert apart == [12] * 4 + [24 * 3] + [1] * 5 + [12]


def test_a_candidate_takes_as_many_cycles_as_its_group_has_probes():
    parameters = digest_parameters(cores=1, sub_window=20, lanes=2, probes=3, digest_bits=3)
    model = Model(parameters, 0, 0, 20, matches=equal)
    for _ in range(20):
        model.tuple(1, 0b1011 << 1)
    for _ in range(12):
        model.tuple(0, 0)
    for _ in range(4):  # groups of one, which the slots of the groups before them do not delay
        model.tuple(0, 0)
        model.flush()
    sent, taken = [], []
    assert drive(model, stamps=(sent, taken)) == model.answers
    stars = [cycle for cycle, word in zip(taken, model.answers, strict=True) if len(word) == 1]
    assert [b - a for a, b in pairwise(stars[:4])] == [20 * 3] * 3


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("digests", "probe_side", "lanes", "rows"),
    half([False, True], [0, 1], [1, 2], [0, 1, 2, 9], of=4),
)
def test_latency_of_a_lone_probe(digests, probe_side, lanes, rows):
    parameters = region_parameters(cores=1, sub_window=9 * lanes, lanes=lanes)
    if digests:
        parameters = parameters.with_(comparator="equality", digest_bits=3)
    model = Model(parameters, probe_side, 0, parameters.capacity, matches=within)
    model.words.pop()  # that is the window after reset
    for _ in range(rows * lanes):
        model.tuple(1 - probe_side, 20)
    model.tuple(probe_side, 1)
    sent, taken = [], []
    drive(model, stamps=(sent, taken))
    dut = Region(parameters, probe_side=probe_side)
    assert taken[0] - sent[-1] == dut.latency + max(rows, 1)


def test_a_tuple_per_cycle_and_a_control_word_in_two():
    parameters = region_parameters(cores=1, sub_window=16, probes=4)
    model = Model(parameters, 0, 0, 16)
    model.words.pop()
    for side in [1] * 30 + [0] * 4 + [1] * 8:
        model.tuple(side, 20)
    sent = []
    drive(model, stamps=(sent, []))
    assert sent == list(range(sent[0], sent[0] + len(sent)))

    model = Model(parameters, 0, 0, 16)
    for _ in range(20):
        model.send(control_word("BOUND_LOW", 0, LOW))
    model.tuple(1, 0)
    model.flush()
    sent = []
    drive(model, stamps=(sent, []))
    assert {b - a for a, b in pairwise(sent[3:20])} == {2}


@pytest.mark.few(1)
@pytest.mark.parametrize(("op", "probes"), half(["WINDOW", "CLEAR"], [1, 4]))
def test_a_window_is_emptied_after_the_probes_before(op, probes):
    parameters = region_parameters(cores=1, sub_window=16, probes=probes)
    model = Model(parameters, 0, 0, 16)
    for _ in range(5):
        for _ in range(16):
            model.tuple(1, 0)
        for _ in range(6):
            model.tuple(0, 0)
        model.begin(op)
        model.tuple(0, 0)
        model.flush()
    assert drive(model) == model.answers


@pytest.mark.parametrize(
    ("burst", "lanes"),
    [
        (64, 3),
        *(pytest.param(*s, marks=pytest.mark.long) for s in [(64, 1), (256, 1), (256, 3)]),
    ],
)
def test_bursts_of_stores_never_overwrite_what_a_probe_still_needs(burst, lanes):
    parameters = region_parameters(cores=1, sub_window=16, probes=4, lanes=lanes)
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
    assert drive(model, stalls=0.2) == model.answers
