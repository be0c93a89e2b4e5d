# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from bench.handshake import HANDSHAKE
from hdl.aggregate.accelerator import describe_aggregate
from hdl.aggregate.aggregate_parameters import AGGREGATE_PRESETS
from hdl.manifest import describe
from hdl.parameters import JoinParameters, KeyField
from hdl.presets import PRESETS
from host import Manifest, UsageError
from host.protocol import input_words
from host.protocol.bit_fields import pack_field, unpack_field
from host.protocol.codecs import AggregateCodec
from host.protocol.manifest import AggregateManifest, JoinAggregateManifest, WordField
from host.protocol.result_words import PLACE
from sim.model.words import JoinWords, MatchWords
from tests.host.small_bundles import BUNDLES

ALL = {
    name: parameters.lane
    for name, parameters in {**PRESETS, **BUNDLES}.items()
    if not parameters.is_aggregated  # whose results are no pairs
}
TWO = {
    name: parameters.with_(tuples_per_word=2)
    for name, parameters in ALL.items()
    if parameters.engine.kind == "index"
}
PLACES = st.builds(WordField, st.integers(0, 150), st.integers(0, 64), st.booleans())


def manifest_of(parameters):
    """Return a manifest without a bundle."""
    return Manifest.from_dict(describe(parameters, "", verilog_file=""))


def as_number(row):
    """Return a word as one Python integer."""
    return int.from_bytes(row.astype("<u8").tobytes(), "little")


@given(PLACES, st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=5))
def test_a_field_survives_and_leaves_its_neighbours_alone(place, values):
    words = np.zeros((len(values), 4), np.uint64)
    pack_field(words, place, np.array(values, np.int64))
    mask = (1 << place.bits) - 1
    assert [as_number(row) for row in words] == [(value & mask) << place.offset for value in values]
    got = unpack_field(words, place).tolist()
    want = [value & mask for value in values]
    if place.signed and place.bits:
        want = [value - (value >> place.bits - 1 << place.bits) for value in want]
    assert got == want


@given(PLACES, st.lists(st.lists(st.integers(0, (1 << 64) - 1), min_size=4, max_size=4)))
def test_a_field_is_read_between_any_neighbours(place, rows):
    words = np.array(rows, np.uint64).reshape(-1, 4)
    want = [as_number(row) >> place.offset & (1 << place.bits) - 1 for row in words]
    unsigned = WordField(place.offset, place.bits)
    assert unpack_field(words, unsigned).tolist() == want


def test_a_field_wider_than_a_column_is_refused():
    words = np.zeros((1, 2), np.uint64)
    with pytest.raises(ValueError, match="65 bits"):
        pack_field(words, WordField(0, 65), 0)
    with pytest.raises(ValueError, match="65 bits"):
        unpack_field(words, WordField(0, 65))


@pytest.mark.parametrize("name", list(ALL))
def test_tuples_lie_where_the_layout_says(name):
    from hdl.words.inputs import input_word

    parameters = ALL[name]
    manifest = manifest_of(parameters)
    rng = np.random.default_rng(1)
    sides = rng.integers(0, 2, 20).astype(np.uint8)
    keys = {
        key.name: rng.integers(key.low, key.high, 20, dtype=np.int64, endpoint=True)
        for key in manifest.keys
    }
    top = (1 << parameters.timestamp_bits) - 1
    times = rng.integers(0, top, 20, dtype=np.uint64, endpoint=True)
    words = JoinWords(manifest).pack_tuples(sides, keys, times)
    assert words.shape == (20, -(-manifest.input_word.bits // 64))
    layout = input_word(parameters)
    for i in range(20):
        constant = layout.from_bits(as_number(words[i]))
        assert constant.kind.value == sides[i]
        for key in manifest.keys:
            assert constant.body.tuple.key[key.name] == keys[key.name][i]
        assert parameters.timestamp_bits == 0 or constant.body.tuple.timestamp == times[i]


def random_tuples(parameters, count, seed):
    """Sides, keys and timestamps of tuples, over all values that fit."""
    rng = np.random.default_rng(seed)
    sides = rng.integers(0, 2, count).astype(np.uint8)
    keys = {
        key.name: rng.integers(key.low, key.high, count, dtype=np.int64, endpoint=True)
        for key in manifest_of(parameters).keys
    }
    top = (1 << parameters.timestamp_bits) - 1
    return sides, keys, rng.integers(0, top, count, dtype=np.uint64, endpoint=True)


def two_by_two(sides, of):
    """Join neighbours of different sides from the front, one by one: lists of ``of`` numbers."""
    words = []
    for number in of:
        if words and len(words[-1]) == 1 and sides[words[-1][0]] != sides[number]:
            words[-1].append(number)
        else:
            words.append([number])
    return words


@pytest.mark.parametrize("name", list(TWO))
def test_two_tuples_lie_where_the_layout_says(name, monkeypatch):
    from hdl.words.inputs import input_word

    monkeypatch.setattr(input_words, "BLOCK", 7)
    parameters = TWO[name]
    count = 60
    sides, keys, times = random_tuples(parameters, count, seed=2)
    words = JoinWords(manifest_of(parameters)).pack_tuples(sides, keys, times)
    groups = two_by_two(sides, range(count))
    assert len(words) == len(groups) < count
    for word, group in zip(words, groups, strict=True):
        constant = input_word(parameters).from_bits(as_number(word))
        places = {group[0]: constant.body.tuple}
        if len(group) == 2:
            assert constant.kind.name == "BOTH"
            assert constant.first == sides[group[0]]
            both = (constant.body.both.r, constant.body.both.s)
            places = {number: both[sides[number]] for number in group}
        else:
            assert constant.kind.value == sides[group[0]]
        for number, place in places.items():
            assert all(place.key[name] == keys[name][number] for name in keys)
            assert parameters.timestamp_bits == 0 or place.timestamp == times[number]


@pytest.mark.parametrize("name", [*ALL, *(f"{name} of two" for name in TWO)])
def test_tuples_return_in_order(name):
    parameters = TWO[name.removesuffix(" of two")] if name.endswith(" of two") else ALL[name]
    codec = JoinWords(manifest_of(parameters))
    sides, keys, times = random_tuples(parameters, 100, seed=3)
    words = np.concatenate(
        [
            codec.pack_tuples(sides[part], {n: c[part] for n, c in keys.items()}, times[part])
            for part in (slice(0, 31), slice(31, 31), slice(31, 100))
        ]
    )
    assert codec.legal(words).all()
    assert codec.tuple_counts(words).sum() == 100
    got_sides, got_keys, got_times = codec.unpack_tuples(words)
    assert got_sides.tolist() == sides.tolist()
    assert {name: column.tolist() for name, column in got_keys.items()} == {
        name: column.tolist() for name, column in keys.items()
    }
    assert got_times.tolist() == (times * bool(parameters.timestamp_bits)).tolist()


@pytest.mark.parametrize("name", list(ALL))
def test_control_words_return(name):
    parameters = ALL[name]
    codec = JoinWords(manifest_of(parameters))
    place = codec.input["control.value"]
    extremes = [-(1 << place.bits - 1), -1, 0, 1, (1 << place.bits - 1) - 1]
    for operation in codec.manifest.operations:
        for value in extremes:
            word = codec.pack_control(operation, 1, value)
            assert word.shape == (1, codec.input.columns)
            assert codec.unpack_control(word[0]) == (operation, 1, value)


@pytest.mark.parametrize("cores", [1, 2, 3, 5, 7, 16, 31])
@pytest.mark.parametrize("fan_in", [2, 3, 4, 5])
def test_results_return_with_the_number_of_the_core(cores, fan_in):
    from hdl.words.results import result_word

    parameters = JoinParameters.of(cores=cores, fan_in=fan_in, lanes=3, probe_bits=5)
    manifest = manifest_of(parameters)
    codec = JoinWords(manifest)
    rng = np.random.default_rng(cores)
    number = np.arange(cores)
    side, lane = number % 2, number % 3
    probe, row = rng.integers(0, 32, cores), rng.integers(0, manifest.storage.ring_rows, cores)
    words = codec.pack_pairs(side, probe, number, row, lane)
    fields = codec.unpack_results(words)
    for name, want in [("side", side), ("probe", probe), ("core", number), ("row", row)]:
        assert getattr(fields, name).tolist() == want.tolist(), name
    assert fields.lane.tolist() == lane.tolist()
    assert not fields.overflow.any()
    assert not fields.disorder.any()
    # Each merger adds the number of the port that the pair came through.
    levels, bits = manifest.storage.gather_levels, manifest.storage.gather_digit_bits
    for i in range(cores):
        code = result_word(parameters).from_bits(as_number(words[i])).body.pair.core
        digits = [code >> level * bits & (1 << bits) - 1 for level in range(levels)]
        assert digits == [i // fan_in**level % fan_in for level in range(levels)]


def test_stars_and_marks_carry_the_errors():
    codec = JoinWords(manifest_of(PRESETS["tiny"]))
    kinds = np.array([codec.star, codec.star, codec.mark])
    illegal = [True, False, True]
    words = codec.pack_punctuation(kinds, [0, 1, 0], [2, 1, 3], [False, True, True], illegal)
    fields = codec.unpack_results(words)
    assert fields.kind.tolist() == kinds.tolist()
    assert fields.side.tolist() == [0, 1, 0]
    assert fields.overflow.tolist() == [2, 1, 3]
    assert fields.disorder.tolist() == [False, True, True]
    assert fields.illegal.tolist() == illegal
    assert len(fields) == 3
    plain = codec.unpack_results(codec.pack_punctuation(codec.star, 1, 0, 0))
    assert not plain.illegal.any()
    # The bits of a pair mean something else.
    rng = np.random.default_rng(1)
    pairs = codec.unpack_results(codec.pack_pairs(0, *rng.integers(0, 2, (4, 50))))
    for name in ("overflow", "disorder", "illegal"):
        assert not getattr(pairs, name).any()


def test_a_star_tells_why_a_core_has_failed():
    parameters = JoinParameters.of(cores=3)
    parameters = parameters.with_(failure_cycles=parameters.longest_silence, parity=True)
    codec = JoinWords(manifest_of(parameters))
    stops = codec.pack_punctuation([codec.star, codec.mark], 0, 0, False, failed=2)
    pack_field(stops, codec.result["failed_parity"], np.array([0, 2]))
    told = codec.unpack_results(stops)
    assert told.failed_core.tolist() == [2, 2]
    assert told.failed_parity.tolist() == [0, 2]
    assert told.failed.tolist() == [True, True]
    sound = codec.unpack_results(codec.pack_punctuation([codec.star, codec.mark], 0, 0, False))
    assert sound.failed.tolist() == [False, False]
    pairs = codec.unpack_results(codec.pack_pairs(0, *np.full((4, 5), 1)))
    assert not pairs.failed_parity.any()
    assert not pairs.failed.any()
    plain = JoinWords(manifest_of(parameters.with_(parity=False)))
    assert "failed_parity" not in plain.result.fields
    lone = plain.unpack_results(plain.pack_punctuation(plain.star, 0, 0, False, failed=1))
    assert lone.failed_parity.tolist() == [0]


def test_only_a_star_can_be_one_of_a_round():
    codec = JoinWords(manifest_of(JoinParameters.of(cores=2, rounds=True)))
    stars = [
        codec.pack_inner_stars(np.zeros(1, np.int64)),
        codec.pack_punctuation(codec.star, 0, 0, False),
    ]
    mark = codec.pack_punctuation(codec.mark, 0, 0, False)
    pack_field(mark, codec.result["inner"], np.ones(1, np.int64))
    told = codec.unpack_results(np.concatenate([*stars, mark]))
    assert told.inner.tolist() == [True, False, False]


def test_a_result_of_a_chain_has_no_place():
    codec = JoinWords(manifest_of(JoinParameters.of(architecture=HANDSHAKE, cores=2, sub_window=4)))
    assert not set(PLACE) & set(codec.result.fields)
    fields = codec.unpack_results(np.zeros((3, codec.result.columns), np.uint64))
    for name in PLACE:
        assert getattr(fields, name).tolist() == [0, 0, 0]
        assert getattr(fields, name).dtype == np.int64


def random_results(codec, count, rng):
    """Return random results of all kinds."""
    results = codec.pack_pairs(
        rng.integers(0, 2, count),
        *(rng.integers(0, 2, count) for _ in ("probe", "core", "row", "lane")),
    )
    kinds = rng.choice([codec.pair, codec.star, codec.mark], count)
    faults = rng.integers(0, 2, count)
    sides = rng.integers(0, 2, count) * (kinds == codec.star)
    others = codec.pack_punctuation(kinds, sides, 3 * faults, faults, faults)
    return np.where((kinds == codec.pair)[:, None], results, others)


@given(st.data(), st.integers(0, 40), st.integers(0, 99))
def test_two_results_in_a_word_return_in_order(data, count, seed):
    name = data.draw(st.sampled_from(list(TWO)))
    codec, rng = JoinWords(manifest_of(TWO[name])), np.random.default_rng(seed)
    results = random_results(codec, count, rng)
    words = codec.join_results(results)
    split, stamps = codec.split_words(words, np.arange(len(words), dtype=np.uint64))
    assert split.tolist() == results.tolist()
    assert split.dtype == np.uint64
    fields = codec.unpack_results(results)
    apart = np.split(np.arange(count), np.flatnonzero(fields.kind == codec.mark))
    groups = []
    for part in apart:  # a mark, which comes first in each but the first, has its own word
        marked = int(fields.kind[part[:1]].sum() == codec.mark)
        groups += [[n] for n in part[:marked]] + two_by_two(fields.side, part[marked:])
    assert stamps.tolist() == [n for n, group in enumerate(groups) for _ in group]
    marks = np.flatnonzero(codec.marks(words))
    assert len(marks) == (fields.kind == codec.mark).sum()


def test_no_tuples_are_no_words():
    codec = JoinWords(manifest_of(PRESETS["tiny"]))
    none = np.zeros(0, np.int64)
    for side in (0, none):
        assert codec.pack_tuples(side, {"x": none}, none).shape == (0, codec.input.columns)
    assert len(codec.unpack_results(np.zeros((0, codec.result.columns), np.uint64))) == 0


def test_one_side_for_all_and_fields_left_out():
    keys = (KeyField(name="x", bits=8), KeyField(name="y", bits=8))
    codec = JoinWords(manifest_of(JoinParameters.of(keys=keys)))
    words = codec.pack_tuples(1, {"y": np.array([1, 2])})
    assert unpack_field(words, codec.input["kind"]).tolist() == [1, 1]
    assert unpack_field(words, codec.input["key.x"]).tolist() == [0, 0]
    assert unpack_field(words, codec.input["key.y"]).tolist() == [1, 2]


@pytest.mark.parametrize("name", list(ALL))
def test_an_operand_of_a_control_word_is_whole_or_refused(name):
    manifest = manifest_of(ALL[name])
    codec, most = JoinWords(manifest), (1 << manifest.input_word["control.value"].bits - 1) - 1
    for operation in manifest.operations:
        for value in (-most - 1, -most, -1, 0, 1, most - 1, most):
            (word,) = codec.pack_control(operation, 15, value)
            assert codec.unpack_control(word) == (operation, 15, value)
        for value in (-most - 2, most + 1, 2 * most + 2, 1 << 70, -(1 << 70)):
            with pytest.raises(UsageError, match=f"{operation}: control.value .* {most}, not "):
                codec.pack_control(operation, 0, value)
        for index in (-1, 16):
            with pytest.raises(UsageError, match=f"{operation}: control.index .* 0 and 15, not "):
                codec.pack_control(operation, index)


def test_results_of_a_join_aggregate_have_values_in_place_of_pairs():
    described = describe(PRESETS["tiny-join-aggregate"], "", verilog_file="")
    codec = MatchWords(JoinAggregateManifest.from_dict(described))
    values = {"count": [2, 0], "total": [-7, 0], "least": [-9, 0], "most": [2, 0]}
    words = [codec.pack_values([0, 1], values), codec.pack_punctuation(codec.star, 2, True, False)]
    found = codec.unpack_results(np.concatenate(words))
    assert found.kind.tolist() == [codec.pair, codec.pair, codec.star]
    assert found.probe[:2].tolist() == [0, 1]
    assert {name: column[:2].tolist() for name, column in found.values.items()} == values
    assert found.overflow.tolist() == [0, 0, 2]
    assert found.disorder.tolist() == [False, False, True]
    assert not np.concatenate([found.illegal, found.side, found.core]).any()
    assert codec.marks(codec.pack_punctuation(codec.mark, 0, False, False)).all()


@pytest.mark.parametrize("name", list(AGGREGATE_PRESETS))
def test_an_operand_of_an_aggregate_is_whole_or_refused(name):
    described = describe_aggregate(AGGREGATE_PRESETS[name], "", verilog_file="")
    codec = AggregateCodec(AggregateManifest.from_dict(described))
    place = codec.manifest.input_word["control.value"]
    most = (1 << place.bits) - 1
    for operation in codec.manifest.operations:
        for value in (0, 1, most - 1, most):
            word = codec.pack_control(operation, value=value)
            assert unpack_field(word, place).tolist() == [value]
        for value in (-1, most + 1, 1 << 70):
            with pytest.raises(UsageError, match=f"{operation}: control.value .* {most}, not "):
                codec.pack_control(operation, value=value)
