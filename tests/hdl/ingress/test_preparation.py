# SPDX-License-Identifier: Apache-2.0
"""The preparation of tuples against plain integers."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped
from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from hdl.ingress.preparation import ProbePreparation
from hdl.parameters import JoinParameters, KeyField
from hdl.predicates.band import comparison_groups
from hdl.words.inputs import InputKind
from hdl.words.operands import bounds_set, value_limits
from hdl.words.prepared import region_word, scheduled_word
from tests.halves import half
from tests.hdl.input_words import (
    control_word,
    integer,
    least,
    open_bounds,
    region_values,
    tuple_word,
)
from tests.hdl.key_fields import FIELD_SETS, keys
from tests.hdl.stream_bench import StreamBench


def parameters_of(fields, comparator="band"):
    """Parameters with these key fields."""
    return JoinParameters.of(keys=FIELD_SETS[fields], comparator=comparator, timestamp_bits=7)


@st.composite
def streams(draw, fields):
    """Strategy for tuples and bounds in turn: a list of words."""
    words = []
    for _ in range(draw(st.integers(0, 30))):
        if draw(st.booleans()):
            words.append(
                tuple_word(draw(st.integers(0, 1)), draw(keys(fields)), draw(st.integers(0, 127)))
            )
            continue
        index = draw(st.integers(0, len(fields) - 1))
        bits = fields[index].bits
        extremes = st.sampled_from([-(1 << bits), 1 - (1 << bits), -1, 0, 1, (1 << bits) - 1])
        value = draw(st.one_of(extremes, st.integers(-(1 << bits), (1 << bits) - 1)))
        op = draw(st.sampled_from(["BOUND_LOW", "BOUND_HIGH"]))
        words.append(control_word(op, index, value))
    return words


def with_bounds(parameters, words):
    """Each word, and the bounds in force."""
    bounds = open_bounds(parameters)
    pairs = []
    for word in words:
        if word["kind"] == InputKind.CONTROL:
            control = word["body"]["control"]
            place = int(control["op"].name == "BOUND_HIGH")
            if control["op"].name.startswith("BOUND") and control["index"] < len(parameters.keys):
                name = parameters.keys[control["index"]].name
                bound = list(bounds[name])
                bound[place] = control["value"]
                bounds = {**bounds, name: tuple(bound)}
        pairs.append((word, bounds))
    return pairs


class DecodedPreparation(wiring.Component):
    """A preparation, told about the value of a word what the ingress tells it."""

    def __init__(self, parameters):
        self.preparation = ProbePreparation(parameters)
        super().__init__(self.preparation.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.preparation = preparation = self.preparation
        connect(m, preparation.o, flipped(self.o))
        bounds = bounds_set(preparation.parameters, self.i.payload.word)
        limits = value_limits(preparation.parameters, self.i.payload.word)
        m.d.comb += [
            preparation.i.payload.eq(self.i.payload),
            preparation.i.payload.bounds.as_value().eq(bounds),
            preparation.i.payload.limits.as_value().eq(limits),
            preparation.i.valid.eq(self.i.valid),
        ]
        return m


def prepare(parameters, words, flags=None, *, stalls=0.0, seed=0, stamps=None):
    """Send words through; return what comes out, as integers."""
    dut = DecodedPreparation(parameters)
    bench = StreamBench(dut, deadline=5_000, stalls=stalls, seed=seed)
    layout = scheduled_word(parameters)
    flags = flags or [{}] * len(words)
    payloads = [integer(layout, {"word": w, **f}) for w, f in zip(words, flags, strict=True)]
    bench.source(dut.i, payloads, stamps=stamps and stamps[0])
    received = bench.sink(dut.o, len(words), stamps=stamps and stamps[1])
    bench.run()
    return received


def ranges(parameters, criterion):
    """The stored values that a criterion admits, by field; its guard bits are as they must be."""
    found = {}
    for n, group in enumerate(comparison_groups(parameters)):
        low, high = criterion[f"low_{n}"], criterion[f"high_{n}"]
        for field in group:
            assert not low >> field.bits & 1
            assert high >> field.bits & 1
            mask = (1 << field.bits) - 1
            found[field.name] = (low & mask, high & mask)
            low, high = low >> field.bits + 1, high >> field.bits + 1
        assert low == high == 0
    return found


@pytest.mark.few(2)
@pytest.mark.parametrize("fields", FIELD_SETS)
@settings(max_examples=5)
@given(data=st.data(), stalls=st.sampled_from([0.0, 0.4]), seed=st.integers(0, 9))
def test_a_criterion_admits_what_the_bounds_in_force_admit(fields, data, stalls, seed):
    parameters = parameters_of(fields)
    words = data.draw(streams(parameters.keys))
    received = prepare(parameters, words, stalls=stalls, seed=seed)
    for word, (sent, bounds) in zip(received, with_bounds(parameters, words), strict=True):
        word = region_word(parameters).from_bits(word)
        if sent["kind"] == InputKind.CONTROL:
            continue
        admitted = ranges(parameters, word.body.tuple.criterion)
        for field in parameters.keys:
            value = sent["body"]["tuple"]["key"][field.name]
            low, high = bounds[field.name]
            first = least(field)
            final = first + (1 << field.bits) - 1
            assert word.body.tuple.key[field.name] == value - first
            for other in {first, final, *(value + d + n for d in (low, high, -low, -high)
                                          for n in (-1, 0, 1))}:  # fmt: skip
                if first <= other <= final:
                    r, s = (other, value) if sent["kind"] == InputKind.S else (value, other)
                    least_met, most_met = admitted[field.name]
                    assert (least_met <= other - first <= most_met) == (low <= r - s <= high)


@pytest.mark.few(2)
@pytest.mark.parametrize(("digest_bits", "fields"), half([None, 1, 5], ["unlike", "widest"]))
@settings(max_examples=5)
@given(data=st.data(), stalls=st.sampled_from([0.0, 0.4]), seed=st.integers(0, 9))
def test_the_model_of_prepared_words_is_exact(fields, digest_bits, data, stalls, seed):
    """The tests of regions rely on it; flags and control words pass unchanged."""
    parameters = parameters_of(fields)
    if digest_bits is not None:
        parameters = parameters.with_(comparator="equality", digest_bits=digest_bits)
    words = data.draw(streams(parameters.keys))
    flag = st.fixed_dictionaries(
        {
            "close": st.integers(0, 3),
            "star": st.integers(0, 3),
            "disorder": st.integers(0, 1),
            "illegal": st.integers(0, 1),
            "free": st.integers(0, 1),
        }
    )
    flags = [data.draw(flag) for _ in words]
    received = prepare(parameters, words, flags, stalls=stalls, seed=seed)
    assert received == [
        integer(region_word(parameters), region_values(parameters, word, bounds=bounds, **flag))
        for (word, bounds), flag in zip(with_bounds(parameters, words), flags, strict=True)
    ]


@pytest.mark.parametrize("side", [0, 1])
def test_every_key_of_a_small_field_with_every_bound(side):
    field = KeyField(name="x", bits=2)
    parameters = JoinParameters.of(keys=(field,))
    cases, words = [], []
    for low in range(-4, 4):
        for high in range(-4, 4):
            words += [control_word("BOUND_LOW", 0, low), control_word("BOUND_HIGH", 0, high)]
            for value in range(-2, 2):
                words.append(tuple_word(side, {"x": value}))
                cases.append((len(words) - 1, value, low, high))
    received = prepare(parameters, words)
    for index, value, low, high in cases:
        word = region_word(parameters).from_bits(received[index])
        (least_met, most_met) = ranges(parameters, word.body.tuple.criterion)["x"]
        met = [other for other in range(-2, 2) if least_met <= other + 2 <= most_met]
        sign = -1 if side else 1
        assert met == [other for other in range(-2, 2) if low <= sign * (value - other) <= high]


def test_a_value_that_is_out_of_range_stands_for_the_nearest_one_inside():
    """Of the fields, ``a`` is wide: so bounds of ``b``, windows and lifespans can be exceeded."""
    fields = (KeyField(name="a", bits=12), KeyField(name="b", bits=3))
    parameters = JoinParameters.of(keys=fields, cores=3, sub_window=7, timestamp_bits=5)
    values = [-(1 << 12), -9, -8, -1, 0, 1, 2, 7, 8, 20, 21, 22, 31, 32, 64, (1 << 12) - 1]
    words = [control_word(op, 1, v) for v in values for op in ("WINDOW", "LIFESPAN", "PRECISION")]
    found = [region_word(parameters).from_bits(w).body.control for w in prepare(parameters, words)]
    assert [(control.op.name, control.value) for control in found] == [
        pair
        for value in values
        for pair in (
            ("WINDOW", min(max(value, 1), 21)),
            ("LIFESPAN", min(max(value, 0), 31)),
            ("PRECISION", value),
        )
    ]
    words = []
    for value in values:
        words += [control_word("BOUND_LOW", 1, value), control_word("BOUND_HIGH", 1, value)]
        words.append(tuple_word(1, {"a": 0, "b": 0}))
    for value, word in zip(values, prepare(parameters, words)[2::3], strict=True):
        criterion = region_word(parameters).from_bits(word).body.tuple.criterion
        least_met, most_met = ranges(parameters, criterion)["b"]
        bound = min(max(value, -8), 7)
        met = [other for other in range(-4, 4) if least_met <= other + 4 <= most_met]
        assert met == [other for other in range(-4, 4) if other == bound]


def test_bounds_are_open_after_reset():
    parameters = parameters_of("unlike")
    words = [
        tuple_word(side, {"a": a, "b": b, "c": c})
        for side in (0, 1) for a in (-16, 15) for b in (0, 15) for c in (-1, 0)
    ]  # fmt: skip
    for word in prepare(parameters, words):
        criterion = region_word(parameters).from_bits(word).body.tuple.criterion
        assert ranges(parameters, criterion) == {"a": (0, 31), "b": (0, 15), "c": (0, 1)}


def test_a_bound_of_a_field_that_is_not_there_changes_nothing():
    parameters = parameters_of("one")
    words = [
        control_word("BOUND_LOW", 1, 3),
        control_word("BOUND_HIGH", 15, 3),
        control_word("WINDOW", 0, 3),
        tuple_word(0, {"a": 2}),
    ]
    word = region_word(parameters).from_bits(prepare(parameters, words)[-1])
    assert ranges(parameters, word.body.tuple.criterion) == {"a": (0, 31)}


@pytest.mark.parametrize("comparator", ["equality", "custom"])
def test_other_comparators_use_the_key_as_it_is(comparator):
    predicate = "somewhere:something" if comparator == "custom" else None
    parameters = JoinParameters.of(
        keys=FIELD_SETS["unlike"], comparator=comparator, predicate=predicate
    )
    key = {"a": -7, "b": 9, "c": -1}
    words = [control_word("BOUND_LOW", 0, 3), *(tuple_word(side, key) for side in (0, 1))]
    for word in prepare(parameters, words)[1:]:
        prepared = region_word(parameters).from_bits(word).body.tuple
        for name, value in key.items():
            assert prepared.criterion[name] == prepared.key[name] == value


@pytest.mark.parametrize("comparator", ["band", "equality"])
def test_latency_and_one_word_per_cycle(comparator):
    parameters = parameters_of("unlike", comparator)
    words = [
        control_word("BOUND_LOW", n % 3, -1) if n % 4 == 0
        else tuple_word(n % 2, {"a": n % 16, "b": 0, "c": 0})
        for n in range(60)
    ]  # fmt: skip
    sent, taken = [], []
    prepare(parameters, words, stamps=(sent, taken))
    dut = ProbePreparation(parameters)
    assert dut.latency == 3
    assert {t - s for s, t in zip(sent, taken, strict=True)} == {dut.latency}
    assert sent[-1] - sent[0] == len(words) - 1
