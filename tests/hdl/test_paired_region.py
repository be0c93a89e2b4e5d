# SPDX-License-Identifier: Apache-2.0
"""A region that takes two tuples in a cycle: it answers as if they came one after the other."""

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from hdl.index.chain_walker import ChainWalker
from hdl.region import PairedRegion, Region
from hdl.words.inputs import InputKind
from hdl.words.prepared import region_word
from hdl.words.results import ResultKind, node_result
from tests.halves import half
from tests.hdl.cells_model import Part
from tests.hdl.input_words import control_word, integer, mirrored_word
from tests.hdl.region_model import LOW, Model, as_tuple, region_parameters, sorted_groups
from tests.hdl.stream_bench import StreamBench


def paired_parameters(**changes):
    """Parameters of a small index with two tuples in a word."""
    values = {"engine": "index", "bucket_bits": 3, "tuples_per_word": 2}
    return region_parameters(**{**values, **changes})


def timed(values, side, timestamp):
    """The region word of a tuple, with its timestamp and in its place among two."""
    prepared = {**values["body"]["tuple"], "timestamp": timestamp}
    return {**values, "first": 0, "body": {"both": {"rs"[side]: prepared}}}


def joined(first, second):
    """The word that has two tuples: what both words close is closed by it."""
    tuples = {**first["body"]["both"], **second["body"]["both"]}
    of_side = first, second
    if first["kind"] == InputKind.S:
        of_side = second, first
    turns = {
        name: [word[name][side] for side, word in enumerate(of_side)]
        for name in ("storing", "leaving")
    }
    return {
        **second,
        **turns,
        "leaves": of_side[0]["leaves"] & 1 | of_side[1]["leaves"] & 2,
        "kind": InputKind.BOTH,
        "first": first["kind"].value,
        "body": {"both": tuples},
        "close": first["close"] | second["close"],
        "star": first["star"] | second["star"],
    }


class PairModel(Model):
    """A :class:`Model` of one tuple after the other, whose words hold two.

    As the ingress does, no two tuples share a word of which the first ends a group that the second
    may end too.
    """

    def __init__(self, parameters, probe_side, position, size, **options):
        super().__init__(parameters.lane, probe_side, position, size, **options)
        self.paired = parameters
        self.times = {}

    def timed_tuple(self, side, key, timestamp=0):
        """A tuple, and when it came."""
        self.times[len(self.words)] = side, timestamp
        self.tuple(side, key)

    def integers(self, pairs):
        """The words as the region gets them; ``pairs`` tells which neighbours share one."""
        words, n = [], 0
        while n < len(self.words):
            word = self.words[n]
            if n in self.times:
                word = timed(word, *self.times[n])
                other = self.times.get(n + 1, self.times[n])
                if other[0] != self.times[n][0] and next(pairs):
                    n += 1
                    word = joined(word, timed(self.words[n], *other))
            words.append(word)
            n += 1
        return [integer(region_word(self.paired), self.mirrored(word)) for word in words]

    def mirrored(self, word):
        """The word as the region of this side gets it."""
        if not self.probe_side:
            return word
        if word["kind"] == InputKind.CONTROL:
            return mirrored_word(word)
        kinds = {InputKind.R: InputKind.S, InputKind.S: InputKind.R}
        tuples = word["body"]["both"]
        places = {"rs"["sr".index(name)]: values for name, values in tuples.items()}
        swapped = {
            name: word[name] >> 1 | (word[name] & 1) << 1 for name in ("close", "star", "leaves")
        }
        swapped |= {name: word[name][::-1] for name in ("storing", "leaving")}
        return {
            **word, **swapped, "kind": kinds.get(word["kind"], word["kind"]),
            "first": 1 - word["first"], "body": {"both": places},
        }  # fmt: skip


def drive(model, pairs, *, stalls=0.0, seed=0, stamps=None):
    """Send a model's words to a region; return what its results say."""
    dut = PairedRegion(model.paired, probe_side=model.probe_side)
    bench = StreamBench(dut, deadline=30_000, stalls=stalls, seed=seed)

    async def place(ctx):
        ctx.set(dut.position, model.position)

    bench.simulator.add_testbench(place, background=True)
    bench.source(dut.words, model.integers(pairs), stamps=stamps and stamps[0])
    received = bench.sink(dut.results, len(model.answers), stamps=stamps and stamps[1])
    bench.run(extra_cycles=40)
    return [as_tuple(node_result(model.parameters, 0).from_bits(word)) for word in received]


def always():
    """Neighbours share a word wherever they may."""
    while True:
        yield True


@settings(max_examples=3)
@given(
    probes=st.sampled_from([1, 2, 3, 5, 40]),
    cores=st.sampled_from([1, 2, 3]),
    sub_window=st.sampled_from([1, 3, 6, 11, 70]),
    part=st.sampled_from([Part(), Part(0, 3, 0), Part(2, 3, 0)]),
    probe_side=st.integers(0, 1),
    timestamp_bits=st.sampled_from([0, 8]),
    stalls=st.sampled_from([0.0, 0.3]),
    data=st.data(),
)
def test_two_tuples_are_answered_like_one_after_the_other(
    probes, cores, sub_window, part, probe_side, timestamp_bits, stalls, data
):
    parameters = paired_parameters(
        probes=probes, cores=cores, sub_window=sub_window, probe_bits=6,
        timestamp_bits=timestamp_bits,
    )  # fmt: skip
    size = data.draw(st.integers(1, parameters.capacity))
    position = data.draw(st.integers(0, cores - 1))
    model = PairModel(parameters, probe_side, position, size, parts=(part,))
    events = st.one_of(
        *[st.tuples(st.integers(0, 1), st.integers(-4, 4))] * 4,
        st.sampled_from(["FLUSH", "WINDOW", "CLEAR"]),
    )
    stored = 0
    for event in data.draw(st.lists(events, max_size=70)):
        if event == "FLUSH":
            model.flush()
        elif event in ("WINDOW", "CLEAR"):
            model.begin(event)
        else:
            model.timed_tuple(*event)
        stored = stored + 1 if event[0] == 1 - probe_side and model.group else 0
        if stored == parameters.cores * parameters.slack:
            model.flush()
            stored = 0
    model.flush()
    choices = data.draw(st.lists(st.booleans(), min_size=1, max_size=9))

    def pairs():
        while True:
            yield from choices

    found = drive(model, pairs(), stalls=stalls)
    assert sorted_groups(found) == sorted_groups(model.answers)


class TimedModel(PairModel):
    """A model with a time-based window of the lifespan ``size``."""

    full = False  # a tuple leaves because of its age alone, which the region itself watches

    def __init__(self, parameters, probe_side, position, size, **options):
        super().__init__(parameters, probe_side, position, size, **options)
        begins = self.words[-1]["body"]["control"]
        begins["op"], begins["value"] = begins["op"].LIFESPAN, size

    def tuple(self, side, key):
        """Let the tuples leave that have outlived the lifespan, then store or probe."""
        now = self.times[len(self.words)][1]
        self.born = [
            (entry, at) for entry, at in getattr(self, "born", []) if now - at <= self.size
        ]
        self.window = [entry for entry, _ in self.born]
        before = len(self.window)
        super().tuple(side, key)
        if side != self.probe_side:
            mine = (self.seen - 1) % self.parameters.cores == self.position
            entry = ((self.seen - 1) // self.parameters.cores, key) if mine else None
            self.born.append((entry, now))
        assert before <= len(self.born)


@settings(max_examples=3)
@given(
    lifespan=st.sampled_from([0, 1, 5, 20]),
    cores=st.sampled_from([1, 2, 3]),
    probes=st.sampled_from([1, 3]),
    probe_side=st.integers(0, 1),
    stalls=st.sampled_from([0.0, 0.3]),
    steps=st.lists(
        st.tuples(st.integers(0, 1), st.integers(-2, 2), st.sampled_from([0, 0, 1, 3, 9])),
        max_size=40,  # fewer than the slack
    ),
)
def test_time_passes_between_the_two_tuples_of_a_word(
    lifespan, cores, probes, probe_side, stalls, steps
):
    parameters = paired_parameters(
        cores=cores, probes=probes, sub_window=70, timestamp_bits=12, probe_bits=6
    )
    model = TimedModel(parameters, probe_side, 0, lifespan)
    now = 0
    for side, key, step in steps:
        now += step
        model.timed_tuple(side, key, now)
    model.flush()
    found = drive(model, always(), stalls=stalls)
    assert sorted_groups(found) == sorted_groups(model.answers)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("probe_side", "first", "probes"),
    half([0, 1], [0, 1], [1, 2, 4], of=3),
)
def test_a_word_of_two_tuples_is_taken_in_every_cycle(probe_side, first, probes):
    """Also where one group follows another."""
    parameters = paired_parameters(probes=probes, sub_window=40, cores=1, bucket_bits=5)
    model = PairModel(parameters, probe_side, 0, 40, parts=(Part(0, 5, 0),))
    for n in range(24):
        for side in (first, 1 - first):
            model.timed_tuple(side, 20 if side == probe_side else n % 16)
    sent = []
    drive(model, always(), stamps=(sent, []))
    words = sent[-20:]  # long after the control words
    assert words == list(range(words[0], words[0] + 20))


@pytest.mark.few(2)
@pytest.mark.parametrize(("probe_side", "first", "lifespan"), half([0, 1], [0, 1], [38, 39], of=2))
def test_a_word_is_taken_in_every_cycle_although_a_key_leaves_for_each(probe_side, first, lifespan):
    """For the first tuple of each word, or between the two."""
    parameters = paired_parameters(
        probes=2, sub_window=40, cores=1, bucket_bits=5, timestamp_bits=12
    )
    model = TimedModel(parameters, probe_side, 0, lifespan, parts=(Part(0, 5, 0),))
    for n in range(60):
        for tuple_, side in enumerate((first, 1 - first)):
            model.timed_tuple(side, 20 if side == probe_side else n % 16, 2 * n + tuple_)
    sent = []
    found = drive(model, always(), stamps=(sent, []))
    assert sorted_groups(found) == sorted_groups(model.answers)
    words = sent[-30:]  # long after the first keys
    assert words == list(range(words[0], words[0] + 30))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("probe_side", "comparator", "first"),
    half([0, 1], [("band", 0), ("equality", 0), ("equality", 1)]),
)
def test_latency_is_that_of_a_region(probe_side, comparator, first):
    parameters = paired_parameters(cores=2, sub_window=9, comparator=comparator)
    # The other core stores the tuple, so no walk begins.
    model = PairModel(parameters, probe_side, 1, 9, matches=lambda r, s: r == s)
    for _ in range(30):
        model.send(control_word("BOUND_LOW", 0, LOW))
    for side in (first, 1 - first):
        model.timed_tuple(side, 20 if side == probe_side else 3)
    sent, taken = [], []
    found = drive(model, always(), stamps=(sent, taken))
    assert found == [(ResultKind.STAR,)]
    dut = PairedRegion(parameters, probe_side=probe_side)
    assert dut.latency == Region(parameters.lane, probe_side=probe_side).latency
    assert taken[0] - sent[-1] == dut.latency


@pytest.mark.few(1)
@pytest.mark.parametrize("probe_side", [0, 1])
def test_a_walk_waits_a_cycle_longer_than_that_of_a_region(probe_side):
    """The queue of walks is deeper; the match is the one entry that is read."""
    parameters = paired_parameters(cores=1, sub_window=9, comparator="equality")
    model = PairModel(parameters, probe_side, 0, 9, matches=lambda r, s: r == s)
    model.timed_tuple(1 - probe_side, 20)
    for _ in range(30):
        model.send(control_word("BOUND_LOW", 0, LOW))
    model.timed_tuple(probe_side, 20)
    sent, taken = [], []
    found = drive(model, always(), stamps=(sent, taken))
    assert [kind for kind, *_ in found] == [ResultKind.PAIR, ResultKind.STAR]
    dut = PairedRegion(parameters, probe_side=probe_side)
    assert taken[-1] - sent[-1] == dut.latency + 4 + ChainWalker.CIRCLE
