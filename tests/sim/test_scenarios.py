# SPDX-License-Identifier: Apache-2.0
"""The scoreboard of the benches accepts the software device's answers, and right ones only."""

import numpy as np
import pytest

from hdl.parameters import JoinParameters, KeyField
from host.device.software import SoftwareDevice
from host.errors import DeviceError
from host.words import WordCodec
from sim.scenarios import check, make_scenario, names
from tests.scenarios import manifest_of

PARAMETERS = JoinParameters(
    cores=3, sub_window=5, keys=(KeyField(name="x", bits=8),), timestamp_bits=16, fan_in=2
)


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    with SoftwareDevice(manifest_of(PARAMETERS, tmp_path_factory.mktemp("bundle"))) as device:
        yield device


def answer(device, scenario):
    """Return the result words of the three marks and what is between them."""
    words, parts, marks = scenario.words, [], 0
    codec = WordCodec(device.manifest)
    while marks < 3:
        results = np.zeros((4096, device.manifest.result_word.columns), np.uint64)
        done = device.exchange(words, results, cycles=1)
        words = words[done.accepted :]
        parts.append(results[: done.produced])
        marks += int((codec.unpack_results(parts[-1]).kind == codec.mark).sum())
    return np.concatenate(parts)


def test_every_scenario_is_accepted_and_means_something(device):
    for name in names(device.manifest):
        scenario = make_scenario(device.manifest, name, tuples=80, seed=3)
        words = answer(device, scenario)
        check(device.manifest, scenario, words)
        pairs = (WordCodec(device.manifest).unpack_results(words).kind == 0).sum()
        assert (pairs > 0) == (name not in ("no_match", "one_sided", "empty")), name


def test_wrong_answers_are_found(device):
    scenario = make_scenario(device.manifest, "count", tuples=80, seed=3)
    words = answer(device, scenario)
    codec = WordCodec(device.manifest)
    kinds = codec.unpack_results(words).kind
    pair = int(np.flatnonzero(kinds == codec.pair)[20])
    star = int(np.flatnonzero(kinds == codec.star)[20])
    double = next(n for n in range(len(kinds) - 1) if kinds[n] == kinds[n + 1] == codec.pair)
    swapped = words.copy()
    swapped[[double, double + 1]] = swapped[[double + 1, double]]
    another = words.copy()
    another[pair] ^= np.uint64(1 << device.manifest.result_word["row"].offset)
    wrongs = {
        "a pair is missing": np.delete(words, pair, axis=0),
        "a pair comes twice": np.insert(words, pair, words[pair], axis=0),
        "a pair is another": another,
        "a star is missing": np.delete(words, star, axis=0),
        "a pair comes after its star": np.insert(
            np.delete(words, pair, axis=0),
            int(np.flatnonzero(kinds == codec.star)[-1]),
            words[pair],
            axis=0,
        ),
        "two pairs change places": swapped,
    }
    for reason, wrong in wrongs.items():
        try:
            check(device.manifest, scenario, wrong)
        except (AssertionError, DeviceError):
            continue
        pytest.fail(f"not found: {reason}")
