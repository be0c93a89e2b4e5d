# SPDX-License-Identifier: Apache-2.0
"""Masks of cores in the model of the soak, and in its programs."""

import json

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from hdl.parameters import JoinParameters, KeyField
from sim.failures.bundles import faulty, manifest_of
from sim.failures.trials import SHAPES
from tests.host.small_bundles import write_manifest
from tests.soak.checking import Checker, difference
from tests.soak.machine import Feeding
from tests.soak.model import Model
from tests.soak.programs import Programmer
from tests.soak.results import PAIR, STAR, read_results
from tests.soak.stars import rounds_with_stars
from tests.soak.storage import Masks, is_lawful
from tests.soak.test_model import software_results, with_flush
from tests.soak.words import WordLayout


def gated(**options):
    """Parameters of an accelerator whose cores can be masked."""
    chosen = {"keys": (KeyField(name="x", bits=16),), "sub_window": 4, "timestamp_bits": 16}
    parameters = JoinParameters.of(**{**chosen, **options})
    return parameters.with_(failure_cycles=parameters.longest_silence)


def manifest_in(folder, parameters):
    return json.loads((write_manifest(parameters, folder) / "manifest.json").read_text())


class Writer:
    """Writes words of an accelerator with one key field."""

    def __init__(self, manifest):
        self.layout = WordLayout(manifest["input_word"])
        self.kinds, self.operations = manifest["input_kinds"], manifest["operations"]

    def control(self, op, value=0, index=0):
        return self.layout.word(
            kind=self.kinds["CONTROL"],
            control_op=self.operations[op],
            control_index=index,
            control_value=value,
        )

    def tuple(self, side, x, timestamp=0):
        return self.layout.word(kind=self.kinds[side], key_x=x, timestamp=timestamp)

    def query(self, lifespan):
        """Return words that set bounds and time-based windows."""
        bounds = [self.control(op, 0) for op in ("BOUND_LOW", "BOUND_HIGH")]
        return [*bounds, *(self.control("LIFESPAN", lifespan, side) for side in (0, 1))]

    def segment(self, *cores):
        return [*(self.control("CORE", core) for core in cores), self.control("SEGMENT")]


def program_of_a_long_window(manifest, first, masked):
    """Return a program in which a core keeps tuples while a masked one would store many.

    Core 0 stores ``first`` tuples of R, and another one after ``masked`` tuples of core 1, which is
    masked. Two probes of S meet the window before and after that last tuple.
    """
    write = Writer(manifest)
    words = [*write.query(100), write.control("MASK", 1), *write.segment(0)]
    words += [write.tuple("R", 7)] * first
    words += [*write.segment(1), *[write.tuple("R", 7)] * masked, *write.segment(0)]
    words += [write.tuple("S", 7), write.tuple("R", 8), write.tuple("S", 8)]
    return np.concatenate(words)


def model_agrees_with_software(manifest, folder, words):
    words = with_flush(manifest, words)
    results, wrong = read_results(manifest, software_results(folder, words))
    assert wrong is None
    assert difference(Model(manifest).answer(words), results, "scan") is None
    return results


@pytest.mark.parametrize("first", [1, 3, 4])
@pytest.mark.parametrize("masked", [7, 8, 9, 100])
def test_tuples_of_masked_cores_take_no_room(first, masked, tmp_path):
    """The window holds more tuples than all cores; it overflows if core 0 does."""
    manifest = manifest_in(tmp_path, gated(cores=2))
    words = program_of_a_long_window(manifest, first, masked)
    results = model_agrees_with_software(manifest, tmp_path, words)
    of_s = (results.kind == STAR) & (results.side == 1)
    assert (results.code[of_s] >> 2 & 1).tolist() == [0, int(first == 4)]
    if first < 4:
        assert (results.kind == PAIR).sum() == first + 1


def program_of_an_overflow(manifest, first, *, other=False):
    """Return a program in which core 0 overflows and is masked, core 1 too if ``other``."""
    write = Writer(manifest)
    words = [*write.query(100), *write.segment(0), *[write.tuple("R", 7)] * first]
    words += [*write.segment(1), *[write.tuple("R", 7)] * (first if other else 1)]
    words += [write.tuple("S", 7), write.control("MASK", 0), write.tuple("S", 7)]
    words += [write.control("FLUSH"), write.control("CLEAR"), write.tuple("S", 7)]
    return np.concatenate(words)


@pytest.mark.parametrize("other", [False, True])
def test_a_core_tells_of_its_overflow_until_it_is_masked(other, tmp_path):
    manifest = manifest_in(tmp_path, gated(cores=2))
    words = program_of_an_overflow(manifest, 5, other=other)
    results = model_agrees_with_software(manifest, tmp_path, words)
    told = (results.code >> 2 & 1)[(results.kind == STAR) & (results.side == 1)]
    assert told.tolist() == [1, int(other), 0]


def test_an_index_gets_the_parts_of_its_buckets_again(tmp_path):
    manifest = manifest_in(tmp_path, gated(cores=2, engine="index"))
    write = Writer(manifest)
    words = [write.control("UNMASK", 1), *write.query(9), write.tuple("R", 7)]
    assert not is_lawful(manifest, np.concatenate(words))
    parts = [write.control("COORDINATE", value) for value in (0, 5)]
    assert is_lawful(manifest, np.concatenate([*words[:1], *parts, *words[1:]]))
    assert not is_lawful(manifest, np.concatenate([*words[:1], parts[1], *words[1:]]))


@pytest.mark.few(1)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("other", [False, True])
def test_hardware_tells_of_an_overflow_until_the_core_is_masked(other):
    parameters = SHAPES["scan, arity 2"]
    bundle = faulty(parameters, print)  # of which no core fails here
    manifest = manifest_of(bundle)
    checker = Checker(bundle / "splitjoin.so", manifest)
    words = program_of_an_overflow(manifest, parameters.window.sub_window + 1, other=other)
    assert checker.check(words, Feeding(seed=1)).difference is None


@pytest.mark.timeout(600)
def test_hardware_gives_tuples_of_masked_cores_no_room():
    parameters = SHAPES["scan, arity 2"]
    bundle = faulty(parameters, print)  # of which no core fails here
    manifest = manifest_of(bundle)
    checker = Checker(bundle / "splitjoin.so", manifest)
    for first in (1, parameters.window.sub_window):
        for masked in (parameters.capacity - 1, parameters.capacity + 1, 1000):
            words = program_of_a_long_window(manifest, first, masked)
            assert checker.check(words, Feeding(seed=1)).difference is None


def test_pairs_with_tuples_of_a_masked_core_are_missing_until_it_is_configured_again(tmp_path):
    manifest = manifest_in(tmp_path, gated(cores=2))
    write = Writer(manifest)
    probe = write.tuple("S", 7)
    words = [*write.query(9), write.tuple("R", 7), write.tuple("R", 7), probe]
    words += [write.control("MASK", 0), probe, write.control("UNMASK", 0), *write.query(9)]
    words += [write.tuple("R", 7), probe]
    results = model_agrees_with_software(manifest, tmp_path, np.concatenate(words))
    pairs = results[results.kind == PAIR]
    assert pairs.core.tolist() == [0, 1, 1, 0]


def test_a_core_is_masked_from_its_word_on():
    masks = Masks(3, [(4, 1, True), (6, 7, True), (8, 1, False), (8, 2, True)])
    assert masks.of(np.array([3, 5, 7, 9]), 1).tolist() == [False, True, True, False]
    assert masks.of(np.array([9, 9]), np.array([0, 2])).tolist() == [False, True]


@pytest.mark.parametrize("rounds", [False, True])
def test_programs_and_their_beginnings_configure_what_takes_part_again(rounds, tmp_path):
    manifest = manifest_in(tmp_path, gated(cores=4, rounds=rounds))
    seen = set()
    for seed in range(30):
        random = np.random.default_rng(seed)
        program = Programmer(manifest, 3000).program(random)
        assert is_lawful(manifest, program.words)
        seen |= {name for name, _ in program.facts}
    assert "words of a mask" in seen


@pytest.mark.parametrize("gone", [None, *range(5)])
def test_a_program_without_a_window_or_a_bound_after_unmask_is_not_lawful(gone, tmp_path):
    manifest = manifest_in(tmp_path, gated(cores=2))
    write = Writer(manifest)
    words = [write.control("UNMASK", 1), *write.query(9), write.tuple("R", 7)]
    if gone is not None:
        del words[gone]
    assert is_lawful(manifest, np.concatenate(words)) == (gone in (None, 0))
    assert is_lawful(manifest, np.concatenate(words[:-1]))  # no tuple comes
    other = [write.control("UNMASK", 2), write.tuple("R", 7)]  # no such core
    assert is_lawful(manifest, np.concatenate(other))


def test_a_shrunk_program_is_lawful(tmp_path, monkeypatch):
    manifest = manifest_in(tmp_path, gated(cores=2))
    write = Writer(manifest)
    words = [write.control("UNMASK", 1), *write.query(9), write.tuple("R", 7)] * 3
    checker = object.__new__(Checker)
    checker.manifest = manifest

    def check(some, feeding):
        """See a difference in every program with an UNMASK and a tuple behind it."""
        op = write.layout.get(some, "control.op") * write.layout.get(some, "kind")
        place = np.flatnonzero(op == 2 * manifest["operations"]["UNMASK"])
        differs = len(place) and (write.layout.get(some[place[0] :], "kind") == 0).any()
        return type("Outcome", (), {"difference": "a lie" if differs else None})

    monkeypatch.setattr(checker, "check", check)
    least, _ = checker.shrunk(np.concatenate(words), Feeding(seed=1), lambda: False)
    assert is_lawful(manifest, least)
    assert len(least) == 6


@given(
    turns=st.lists(st.booleans(), min_size=1, max_size=5),
    size=st.sampled_from([1, 2, 4]),
    begin=st.integers(0, 30),
    length=st.integers(0, 30),
)
def test_a_star_follows_a_round_whose_last_tuple_of_a_core_that_answers_is_seen(
    turns, size, begin, length
):
    cores = len(turns)
    wanted = {
        (n // cores) // size
        for n in range(begin, begin + length)
        if turns[n % cores] and (n // cores) % size == size - 1
    }
    one = [np.array([value]) for value in (cores, turns, size, begin, begin + length)]
    probe, number = rounds_with_stars(*one)
    assert number.tolist() == sorted(wanted)
    assert not probe.any()
