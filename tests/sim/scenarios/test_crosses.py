# SPDX-License-Identifier: Apache-2.0
"""Crosses of coverage: words by hand, and what they have met."""

import numpy as np
import pytest

from bench.figures.verification import CHAINS
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest, load_join_manifest
from sim.benches.shapes import SHAPES
from sim.scenarios import Crosses, illegal_word, make_scenario
from tests.host.small_bundles import write_manifest


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    return Manifest.load(
        write_manifest(SHAPES["one core"], tmp_path_factory.mktemp("c") / "bundle")
    )


def sampled(manifest, parts, waits=()):
    """Return the combinations that words have met."""
    words = np.concatenate(parts)
    crosses = Crosses(manifest)
    crosses.sample(words, [set(waits) for _ in words])
    return {names for names, count in crosses.met.items() if count}


def tuples(manifest, sides, times):
    """Return the words of tuples."""
    codec = WordCodec(manifest)
    return codec.pack_tuples(
        np.array(sides, np.uint8), {"x": np.zeros(len(sides), np.int64)}, np.array(times)
    )


def test_a_count_grows_until_it_is_full(manifest):
    pack = WordCodec(manifest).pack_control
    parts = [pack("WINDOW", 0, 2), tuples(manifest, [1, 0, 1, 0, 1], [0] * 5)]
    met = sampled(manifest, parts)
    assert {names for names in met if names[0] == "S"} == {
        ("S", "at once", boundary, "each probe") for boundary in ("empty", "growing", "full")
    }


@pytest.mark.parametrize(
    ("time", "boundary"),
    [
        (6, "none expired"),
        (7, "oldest in its last moment"),
        (8, "some expired"),
        (30, "all expired"),
    ],
)
def test_a_time_passes_by_its_end(manifest, time, boundary):
    pack = WordCodec(manifest).pack_control
    parts = [pack("LIFESPAN", 1, 5), tuples(manifest, [1, 1, 0], [2, 4, time])]
    met = sampled(manifest, parts, ["withheld", "refused"])
    assert {names for names in met if names[0] == "R"} == {
        ("R", wait, boundary, "each probe") for wait in ("withheld", "refused")
    }


def test_other_words_meet_both_windows_and_the_precision_before_them(manifest):
    pack = WordCodec(manifest).pack_control
    illegal = illegal_word(manifest, np.random.default_rng(1))
    parts = [tuples(manifest, [0], [0]), pack("PRECISION", 0, 0), illegal, pack("CLEAR")]
    met = sampled(manifest, [*parts, tuples(manifest, [1], [1])])
    two = ("growing", "empty")
    assert met == {
        ("R", "at once", "empty", "each probe"),
        *(("control", "at once", boundary, "each probe") for boundary in two),
        *(("no meaning", "at once", boundary, "none") for boundary in two),
        *(("control", "at once", boundary, "none") for boundary in two),
        ("S", "at once", "empty", "none"),
    }


def test_what_an_accelerator_cannot_meet_does_not_count(tmp_path):
    for shape, count in (("one core", 252), ("rounds", 420), ("an index of equality", 420)):
        found = Manifest.load(write_manifest(SHAPES[shape], tmp_path / shape))
        assert len(Crosses(found).met) == count


@pytest.mark.parametrize("name", ["one core", "rounds", "an index of equality", "a handshake join"])
def test_busy_words_are_of_every_kind_in_every_state_at_every_precision(name, tmp_path):
    """Whether they are refused is up to the accelerator; all that could be are there."""
    manifest = load_join_manifest(write_manifest((SHAPES | CHAINS)[name], tmp_path / "bundle"))
    made = make_scenario(manifest, "busy", tuples=0, seed=1)
    crosses = Crosses(manifest)
    assert sampled(manifest, [made.words], ["refused"]) == {
        names for names in crosses.met if names[1] == "refused"
    }
