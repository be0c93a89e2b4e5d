# SPDX-License-Identifier: Apache-2.0
"""Long scenarios in the simulator library, answered word by word like the software device."""

import numpy as np
import pytest

from hdl.bundle import write_bundle
from hdl.parameters import JoinParameters, KeyField
from host.protocol.buckets import Coordinate
from host.protocol.codecs import WordCodec
from host.protocol.configuration import configuration
from host.protocol.manifest import Manifest
from host.query.ordering import Ordering
from host.reference.predicate import Bounds
from host.reference.window import CountWindow
from sim.scenarios import Scenario, answer, assert_right, hostile_scenario, random_scenario
from sim.verilated.library import build_library

XY = (KeyField(name="x", bits=12), KeyField(name="y", bits=9, signed=False))

#: Accelerators of every kind: all core counts that trees can stumble over, lanes, groups.
SHAPES = {
    "1 core": JoinParameters.of(cores=1, sub_window=37, keys=XY, timestamp_bits=20),
    "2 cores, 3 lanes": JoinParameters.of(
        cores=2, sub_window=50, keys=XY, timestamp_bits=20, lanes=3, fan_in=2
    ),
    "3 cores, 4 probes": JoinParameters.of(
        cores=3, sub_window=20, keys=XY, timestamp_bits=20, probes=4, fan_in=2, fan_out=2
    ),
    "4 cores, 2 lanes, 8 probes": JoinParameters.of(
        cores=4, sub_window=64, keys=XY, timestamp_bits=20, lanes=2, probes=8
    ),
    "8 cores, 6 lanes, 8 probes": JoinParameters.of(
        cores=8, sub_window=16, keys=XY, timestamp_bits=20, lanes=6, probes=8
    ),
    "7 cores": JoinParameters.of(
        cores=7, sub_window=9, keys=XY, timestamp_bits=20, fan_in=3, fan_out=3, probe_bits=3
    ),
    "2 cores, 3 lanes, digests": JoinParameters.of(
        cores=2, sub_window=50, keys=XY, timestamp_bits=20, lanes=3, probes=4, fan_in=2,
        comparator="equality", digest_bits=4,
    ),
    "index": JoinParameters.of(
        cores=1, sub_window=120, keys=XY, timestamp_bits=20, probes=8, engine="index"
    ),
    "index, 3 cores, few buckets": JoinParameters.of(
        cores=3, sub_window=20, keys=XY, timestamp_bits=20, probes=4, fan_in=2, engine="index",
        bucket_bits=2,
    ),
    "index, 5 cores, few buckets": JoinParameters.of(
        cores=5, sub_window=20, keys=XY, timestamp_bits=20, probes=4, fan_in=2, engine="index",
        bucket_bits=2,
    ),
    "index, equality": JoinParameters.of(
        cores=2, sub_window=40, keys=XY, timestamp_bits=20, probes=3, engine="index",
        comparator="equality",
    ),
    "index, two in a word": JoinParameters.of(
        cores=1, sub_window=120, keys=XY, timestamp_bits=20, probes=8, engine="index",
        tuples_per_word=2,
    ),
    "index, equality, two in a word": JoinParameters.of(
        cores=2, sub_window=40, keys=XY, timestamp_bits=20, probes=3, engine="index",
        comparator="equality", tuples_per_word=2,
    ),
}  # fmt: skip


#: Shapes that `make test-long` adds: much like others, and half a minute to compile each. Two
#: tuples in a word are compiled for the driver and for the soak, too. Digests are in the tests of
#: regions and whole accelerators in Amaranth's simulator.
MORE = (
    "1 core", "2 cores, 3 lanes", "2 cores, 3 lanes, digests", "4 cores, 2 lanes, 8 probes",
    "8 cores, 6 lanes, 8 probes",
    "7 cores", "index, two in a word", "index, 3 cores, few buckets", "index, 5 cores, few buckets",
    "index, equality", "3 cores, 4 probes, two in a word", "index, equality, two in a word",
)  # fmt: skip


SEEDS = (0, 1, pytest.param(2, marks=pytest.mark.long))


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.long] * (name in MORE)) for name in SHAPES],
)
def bundle(request, tmp_path_factory):
    """A bundle with its library."""
    folder = tmp_path_factory.mktemp("scenarios") / "bundle"
    write_bundle(SHAPES[request.param], folder)
    build_library(folder)
    return folder


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("stall_in", "stall_out"), [(0, 0), (60, 60), (0, 200)])
def test_in_order_the_results_are_those_of_the_reference(bundle, seed, stall_in, stall_out):
    manifest = Manifest.load(bundle)
    scenario = random_scenario(manifest, seed, tuples=1500, segments=5)
    received = answer(bundle, scenario, seed=seed + 1, stall_in=stall_in, stall_out=stall_out)
    assert_right(bundle, scenario, received)


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("stall_in", "stall_out"), [(0, 0), (60, 60)])
def test_without_order_the_sets_between_stars_are_those_of_the_reference(
    bundle, seed, stall_in, stall_out
):
    manifest = Manifest.load(bundle)
    scenario = random_scenario(manifest, seed, tuples=1500, segments=5, period=0)
    received = answer(bundle, scenario, seed=seed + 1, stall_in=stall_in, stall_out=stall_out)
    assert_right(bundle, scenario, received)


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(2))
def test_stars_and_marks_carry_the_faults_where_the_reference_says(bundle, seed):
    manifest = Manifest.load(bundle)
    scenario = random_scenario(manifest, seed + 50, tuples=800, segments=4, overflow=True)
    received = answer(bundle, scenario, seed=seed, stall_in=30, stall_out=30)
    assert_right(bundle, scenario, received)


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("stall_in", "stall_out"), [(0, 0), (60, 60)])
def test_words_that_no_host_sends_hang_nothing_and_are_forgotten_after_clear(
    bundle, seed, stall_in, stall_out
):
    manifest = Manifest.load(bundle)
    scenario = hostile_scenario(manifest, seed + 70, tuples=300)
    received = answer(bundle, scenario, seed=seed, stall_in=stall_in, stall_out=stall_out)
    assert_right(bundle, scenario, received)


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(2))
def test_faults_of_all_kinds_together_stand_where_the_reference_says(bundle, seed):
    manifest = Manifest.load(bundle)
    codec = WordCodec(manifest)
    scenario = hostile_scenario(manifest, seed + 92, tuples=300, overflow=True)
    received = answer(bundle, scenario, seed=seed, stall_in=30, stall_out=30)
    assert_right(bundle, scenario, received)
    assert codec.unpack_results(received).illegal.any()


@pytest.mark.parametrize("size", [0, 255])
def test_a_window_beyond_the_capacity_is_the_nearest_that_there_is(bundle, size):
    manifest = Manifest.load(bundle)
    codec = WordCodec(manifest)
    generator = np.random.default_rng(size)
    count = 3 * manifest.capacity
    keys = {key.name: generator.integers(0, 4, count) for key in manifest.keys}
    words = [
        *(codec.pack_control("WINDOW", side, size) for side in range(2)),
        codec.pack_control("PRECISION", 0, manifest.probes),
        codec.pack_tuples((np.arange(count) % 2).astype(np.uint8), keys, np.zeros(count)),
        codec.pack_control("FLUSH"),
    ]
    scenario = Scenario(np.concatenate(words), marks=2)
    assert_right(bundle, scenario, answer(bundle, scenario))


@pytest.mark.few(3)
@pytest.mark.parametrize("burst", [1, 32, 256])
def test_bursts_of_hot_keys_lose_and_repeat_nothing(bundle, burst):
    # Bursts longer than the ring's slack, and a fifth of the tuples with one key.
    manifest = Manifest.load(bundle)
    codec = WordCodec(manifest)
    generator = np.random.default_rng(burst)
    count = 4_000
    keys = {
        key.name: np.where(generator.random(count) < 0.2, 3, generator.integers(0, 200, count))
        for key in manifest.keys
    }
    words = [
        configuration(
            manifest,
            dict.fromkeys(keys, Bounds(0, 0)),
            CountWindow(manifest.capacity),
            Ordering(manifest.probes),
        ),
        codec.pack_tuples((np.arange(count) // burst % 2).astype(np.uint8), keys, np.zeros(count)),
        codec.pack_control("FLUSH"),
    ]
    columns = manifest.input_word.columns
    scenario = Scenario(np.concatenate([word.reshape(-1, columns) for word in words]), marks=3)
    received = answer(bundle, scenario)
    assert_right(bundle, scenario, received)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """An index with its library."""
    folder = tmp_path_factory.mktemp("index") / "bundle"
    write_bundle(SHAPES["index"], folder)
    build_library(folder)
    return folder


@pytest.mark.parametrize("places", [(0, 0), (0, 1), (1, 6), (6, 6)])
def test_clear_is_answered_soon_whatever_parts_the_fields_have(index, places):
    # As a product, the cells of both fields would be 2**14 for each probe.
    manifest = Manifest.load(index)
    codec = WordCodec(manifest)
    bits, count = manifest.index.bucket_bits, 200
    generator = np.random.default_rng(0)
    keys = {key.name: generator.integers(0, 200, count) for key in manifest.keys}
    words = [
        *(codec.pack_control("BOUND_LOW", n, -(1 << 12)) for n in range(2)),
        *(codec.pack_control("BOUND_HIGH", n, 1 << 12) for n in range(2)),
        *(
            codec.pack_control("COORDINATE", n, Coordinate(0, bits, place).value(manifest))
            for n, place in enumerate(places)
        ),
        codec.pack_tuples((np.arange(count) % 2).astype(np.uint8), keys, np.zeros(count)),
        codec.pack_control("CLEAR"),
    ]
    scenario = Scenario(np.concatenate(words), marks=1)
    cycles = []
    received = answer(index, scenario, cycles=cycles)
    assert_right(index, scenario, received)
    assert sum(cycles) < 2 * count * ((1 << bits) + manifest.capacity)
