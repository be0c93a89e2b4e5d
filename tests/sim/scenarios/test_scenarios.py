# SPDX-License-Identifier: Apache-2.0
"""Scenarios mean what they say, right answers are accepted, and wrong ones found."""

import numpy as np
import pytest

from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from sim.benches.shapes import SHAPES
from sim.scenarios import (
    Cases,
    Flow,
    Scenario,
    assert_right,
    expected_results,
    hostile_scenario,
    make_scenario,
    names,
)
from sim.scenarios.stretches import taken_apart
from sim.scenarios.tuple_cases import OF_TUPLES
from tests.host.small_bundles import write_manifest

#: Accelerators whose cases are all of those that there are.
SOME = ("one core", "digests", "three indexes", "an index of equality")
#: Streams that stood still for long.
SLOW = Flow(withheld=9, refused=9, untaken=9)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A bundle without Verilog."""
    return write_manifest(SHAPES["three cores"], tmp_path_factory.mktemp("scenarios") / "bundle")


@pytest.mark.parametrize("shape", SOME)
def test_the_scenarios_together_meet_every_case(tmp_path, shape):
    path = write_manifest(SHAPES[shape], tmp_path / "bundle")
    manifest = Manifest.load(path)
    cases = Cases(manifest)
    for name in names(manifest):
        scenario = make_scenario(manifest, name, tuples=400, seed=1)
        results = expected_results(path, scenario)
        assert_right(path, scenario, results)
        assert WordCodec(manifest).marks(results).sum() == scenario.marks
        cases.sample(scenario, results, SLOW)
    assert [name for name, times in cases.met.items() if not times] == []


@pytest.mark.parametrize(
    "shape", [name for name, one in SHAPES.items() if one.engine.kind in ("index", "digest-scan")]
)
def test_keys_collide_in_whatever_an_engine_compares_first(tmp_path, shape):
    manifest = Manifest.load(write_manifest(SHAPES[shape], tmp_path / "bundle"))
    can_meet, meets = OF_TUPLES["keys of one hash or digest"]
    assert can_meet(manifest)
    for seed in range(4):
        scenario = make_scenario(manifest, "collisions", tuples=200, seed=seed)
        found = taken_apart(manifest, scenario.words).stretches
        assert any(meets(manifest, stretch) for stretch in found), seed


@pytest.mark.parametrize("shape", ["rounds", "rounds of digests"])
def test_rounds_are_met_where_the_accelerator_has_them(tmp_path, shape):
    path = write_manifest(SHAPES[shape], tmp_path / "bundle")
    manifest = Manifest.load(path)
    cases = Cases(manifest)
    known = {name for name in names(manifest) if "rounds" in name}
    assert known == {"rounds", "longer rounds", "rounds in time"}
    for name in sorted(known):
        scenario = make_scenario(manifest, name, tuples=300, seed=2)
        results = expected_results(path, scenario)
        inner = WordCodec(manifest).unpack_results(results).inner
        assert inner.sum() > 100
        cases.sample(scenario, results, SLOW)
    assert all(cases.met[f"rounds of {size}"] for size in (1, 2))


def outgrown(bundle, seed, **options):
    """Return whether a window outgrows the cores in a scenario with words that no host sends."""
    manifest = Manifest.load(bundle)
    scenario = hostile_scenario(manifest, seed, tuples=300, **options)
    codec = WordCodec(manifest)
    results = codec.unpack_results(expected_results(bundle, scenario))
    return bool(results.overflow[results.kind != codec.pair].any())


@pytest.mark.long
def test_words_that_no_host_sends_outgrow_no_core_unless_they_may(bundle):
    # While some of the cores took turns, such words made windows of any size, or a CLEAR among them
    # emptied a list of cores. What an accelerator answers then is not determined.
    assert [seed for seed in range(40) if outgrown(bundle, seed)] == []
    assert any(outgrown(bundle, seed, overflow=True) for seed in range(10))


def test_a_case_that_no_scenario_meets_is_not_met(bundle):
    manifest = Manifest.load(bundle)
    cases = Cases(manifest)
    scenario = make_scenario(manifest, "nothing", tuples=400, seed=1)
    cases.sample(scenario, expected_results(bundle, scenario), Flow(0, 0, 0))
    assert {name for name, times in cases.met.items() if times} == {"no tuple"}


def test_wrong_answers_are_found(bundle):
    manifest = Manifest.load(bundle)
    scenario = make_scenario(manifest, "few values", tuples=80, seed=3)
    words = expected_results(bundle, scenario)
    codec = WordCodec(manifest)
    kinds = codec.unpack_results(words).kind
    star = int(np.flatnonzero(kinds == codec.star)[20])
    pair = int(np.flatnonzero(kinds == codec.pair)[5])
    another = words.copy()
    another[pair] ^= np.uint64(1 << manifest.result_word["row"].offset)
    late = np.insert(np.delete(words, pair, axis=0), len(words) - 2, words[pair], axis=0)
    wrongs = {
        "a pair is missing": np.delete(words, pair, axis=0),
        "a pair comes twice": np.insert(words, pair, words[pair], axis=0),
        "a pair is another": another,
        "a star is missing": np.delete(words, star, axis=0),
        "a pair comes after its star": late,
    }
    for wrong in wrongs.values():
        with pytest.raises(AssertionError):
            assert_right(bundle, scenario, wrong)


def test_of_a_faulty_scenario_stars_and_marks_count(bundle):
    manifest = Manifest.load(bundle)
    codec = WordCodec(manifest)
    scenario = make_scenario(manifest, "overflow", tuples=200, seed=3)
    words = expected_results(bundle, scenario)
    kinds = codec.unpack_results(words).kind
    assert_right(bundle, scenario, words[kinds != codec.pair])
    fixed = Scenario(scenario.words, marks=scenario.marks)
    with pytest.raises(AssertionError):
        assert_right(bundle, fixed, words[kinds != codec.pair])
    with pytest.raises(AssertionError):
        assert_right(bundle, scenario, words[kinds != codec.star])
