# SPDX-License-Identifier: Apache-2.0
"""What the soak lets an accelerator leave out after a core has failed."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from host.devices.software import SoftwareDevice
from sim.failures.bundles import faulty, manifest_of
from sim.failures.trials import SHAPES
from tests.conftest import ROOT
from tests.soak.checking import Checker, after_failure, difference
from tests.soak.model import Model
from tests.soak.programs import Programmer
from tests.soak.results import FAILED, FAILED_CORE, INNER, PAIR, STAR, Results, read_results
from tests.soak.runs import Soak
from tests.soak.test_masks import Writer, gated, manifest_in
from tests.soak.test_model import EFFORT, with_flush

ROOM = 1 << 12
#: Programs of a run, and words of each.
PROGRAMS, SHORT = (10, pytest.param(25, marks=pytest.mark.long)), 8000


def results_of_a_failing_device(folder, words, core, place):
    """Return the results of a software device of which a core fails before a word."""
    found = []
    with SoftwareDevice(folder) as device:
        buffer = np.zeros((ROOM, device.manifest.result_word.columns), np.uint64)
        for part in (words[:place], words[place:]):
            if found:
                device.fail(core)
            at, done = 0, None
            while done is None or done.accepted or done.produced:
                done = device.exchange(part[at:], buffer, cycles=1)
                at += done.accepted
                found.append(buffer[: done.produced].copy())
    return np.concatenate(found)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 1 << 31),
    cores=st.integers(2, 5),
    probes=st.sampled_from([1, 3]),
    rounds=st.booleans(),
    place=st.floats(0, 1),
)
def test_a_software_device_leaves_out_what_it_may(
    seed, cores, probes, rounds, place, tmp_path_factory
):
    parameters = gated(cores=cores, probes=probes, rounds=rounds)
    folder = tmp_path_factory.mktemp("bundle")
    manifest = manifest_in(folder, parameters)
    random = np.random.default_rng(seed)
    words = with_flush(manifest, Programmer(manifest, effort=EFFORT).program(random).words)
    core = seed % cores
    begin = int(place * len(words))
    results, wrong = read_results(manifest, results_of_a_failing_device(folder, words, core, begin))
    assert wrong is None
    model = Model(manifest)
    whole, least = model.answer(words), model.answer(words, mute=core)
    expected, found, told = after_failure(whole, least, results, core)
    assert told is None
    assert difference(expected, found, "scan") is None


def answered(tmp_path, *, rounds=0):
    """Return the answers to a program, whole and without core 1, and its end with a failed core.

    Each of four probes matches one tuple in each of two cores. The last two stars tell that core 1
    has failed.
    """
    manifest = manifest_in(tmp_path, gated(cores=2, rounds=bool(rounds)))
    write = Writer(manifest)
    words = [*write.query(9), write.control("INNER" if rounds else "PRECISION", rounds or 1)]
    words += [write.tuple("R", 7)] * 2 + [write.tuple("S", 7)] * 4
    words = with_flush(manifest, np.concatenate(words))
    model = Model(manifest)
    whole, least = model.answer(words), model.answer(words, mute=1)
    code = whole.results.code.copy()
    stars = np.flatnonzero((whole.results.kind == STAR) & (whole.results.side == 1))
    assert len(stars) == 4
    code[stars[2:]] |= 1 << FAILED | 1 << FAILED_CORE
    return whole, least, Results(whole.results.side, code)


def wrong_with(whole, least, actual):
    """Return what is wrong with results after core 1 has failed, or None."""
    expected, found, told = after_failure(whole, least, actual, 1)
    return told or difference(expected, found, "scan")


@pytest.mark.parametrize("rounds", [0, 1])
def test_only_pairs_of_the_core_in_groups_that_lack_some_may_be_missing(rounds, tmp_path):
    whole, least, actual = answered(tmp_path, rounds=rounds)
    assert wrong_with(whole, least, actual) is None
    everything = np.arange(len(actual))
    pairs = np.flatnonzero(actual.kind == PAIR)
    assert actual.core[pairs].tolist() == [0, 1] * 4
    bearable = [wrong_with(whole, least, actual[np.delete(everything, at)]) is None for at in pairs]
    assert bearable == [False] * 5 + [True, False, True]
    gone = pairs[5::2]
    assert wrong_with(whole, least, actual[np.delete(everything, gone)]) is None
    twice = actual[np.insert(everything, pairs[5], pairs[5])]
    assert wrong_with(whole, least, twice)
    inner = np.flatnonzero(actual.kind == INNER)
    assert len(inner) == 4 * rounds


def test_no_other_core_may_be_told_to_have_failed_and_none_comes_back(tmp_path):
    whole, least, actual = answered(tmp_path)
    assert difference(whole, actual, "scan")  # no core was to fail
    other = actual.code | np.where(actual.code >> FAILED & 1, 2 << FAILED_CORE, 0)
    other = np.where(actual.kind == STAR, other, actual.code)
    assert "another core than 1" in wrong_with(whole, least, replace(actual, code=other))
    last = np.flatnonzero((actual.kind == STAR) & (actual.side == 1))[-1]
    code = actual.code.copy()
    code[last] &= ~(1 << FAILED)
    assert "takes part again" in wrong_with(whole, least, replace(actual, code=code))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("programs", PROGRAMS)
def test_programs_agree_with_the_model_while_cores_fail(programs):
    # A folder of its own: in the other one, another worker may be writing the same bundle.
    bundle = faulty(SHAPES["scan, arity 2"], print, folder=ROOT / "build" / "tests")
    manifest = manifest_of(bundle)
    checker = Checker(bundle / "splitjoin.so", manifest)
    said = []
    run = Soak(20261125, said.append, effort=SHORT)
    run.failing[0] = True
    for which in range(programs):
        assert not run.case(0, which, manifest, checker), "\n".join(said)
    assert run.tally.facts["seen", "a failed core"] > programs // 4
    assert sum(name == "fault" for name, _ in run.tally.facts) >= 3
