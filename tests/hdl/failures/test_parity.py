# SPDX-License-Identifier: Apache-2.0
"""Flipped bits in whole accelerators: told with core and side before a wrong pair can leave."""

import random

import numpy as np
import pytest

from bench.handshake import HANDSHAKE
from hdl.accelerator import Accelerator
from hdl.parameters import JoinParameters, KeyField
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from sim.scenarios import Scenario, expected_results
from tests.hdl.counter_reader import counters_at_the_end
from tests.hdl.failures.test_core_gate import compare, groups_of, stops_in
from tests.hdl.flipping_column import flip_columns
from tests.hdl.stream_bench import StreamBench
from tests.hdl.test_accelerator import as_integers, as_results
from tests.host.small_bundles import FLUSH, configuration, pack, random_tuples, write_manifest

#: One core of each engine, as they take long to simulate; ``sim/failures`` has more of them.
SHAPES = {
    "scan": {"lanes": 2, "probes": 2, "timestamp_bits": 10},
    "digests": {"lanes": 3, "comparator": "equality", "digest_bits": 3},
    "index": {"engine": "index", "comparator": "equality", "bucket_bits": 2},
}


def checked(**options):
    """Return parameters of a small accelerator with parity."""
    chosen = {
        "cores": 1,
        "sub_window": 12,
        "keys": (KeyField(name="x", bits=6),),
        "fan_in": 2,
        "fan_out": 2,
    }
    parameters = JoinParameters.of(**{**chosen, **options})
    return parameters.with_(failure_cycles=parameters.longest_silence, parity=True)


def run(parameters, words, count, flips, seed, counted=None):
    """Send words while bits flip in a memory from a cycle on; return the results.

    ``flips`` is called with the list of memories in that cycle, and returns one of them and the
    bits that are turned over in whatever is read from it.
    """
    dut = Accelerator(parameters)
    with pytest.MonkeyPatch.context() as monkeypatch:
        columns = flip_columns(monkeypatch)
        bench = StreamBench(dut, deadline=60_000, stalls=0.2 * (seed % 2), seed=seed)

    async def flip(ctx):
        moment, number, bit = flips
        await ctx.tick().repeat(moment)
        column = columns[number % len(columns)]
        ctx.set(column.flips, 1 << bit % len(column.flips))

    if flips is not None:
        bench.simulator.add_testbench(flip, background=True)
    bench.source(dut.i, as_integers(words))
    received = bench.sink(dut.o, count, weight=lambda word: stops_in(parameters, word))
    if counted is not None:
        found = counters_at_the_end(bench, dut, rest=60)
    bench.run(extra_cycles=60)
    if counted is not None:
        counted.update(found)
    return as_results(parameters, received)


def prepared(folder, shape, seed):
    """Return parameters, manifest, words and the right results of a random query."""
    parameters = checked(**SHAPES[shape])
    path = write_manifest(parameters, folder / shape)
    manifest = Manifest.load(path)
    rng = np.random.default_rng(seed)
    windows = [("WINDOW", parameters.capacity - 1)] * 2
    if parameters.timestamp_bits and seed % 2:
        windows = [("LIFESPAN", 3)] * 2
    tuples = random_tuples(parameters, rng, 24)
    words = pack(manifest, [*configuration(parameters, windows=windows), *tuples, FLUSH])
    return parameters, manifest, words, expected_results(path, Scenario(words, marks=2))


@pytest.mark.few(2)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", [1])
def test_a_flip_is_told_in_every_group_that_it_makes_wrong(tmp_path, shape, seed):
    generator = random.Random(seed)
    parameters, manifest, words, expected = prepared(tmp_path, shape, seed)
    count = len(groups_of(manifest, expected))
    flips = (generator.randrange(20, 60), generator.randrange(99), generator.randrange(99))
    received = run(parameters, words, count, flips, seed)
    fields = WordCodec(manifest).unpack_results(received)
    cores = set(fields.failed_core[fields.failed].tolist())
    assert len(cores) <= 1
    # A pair of a core that is told is right, or did not leave; all else is complete.
    told = compare(manifest, words, expected, received, min(cores, default=0))
    begins = told.index(True) if any(told) else len(told)
    assert all(told[begins:][:-1]) or len(set(told[begins:])) == 2
    sides = fields.failed_parity[fields.failed]
    assert set(sides.tolist()) <= {1, 2}
    assert not fields.failed_parity[~fields.failed].any()


@pytest.mark.parametrize("shape", ["scan"])
def test_without_flips_nothing_is_told_though_memories_are_hostile(tmp_path, shape):
    parameters, manifest, words, expected = prepared(tmp_path, shape, 3)
    counted = {}
    count = len(groups_of(manifest, expected))
    received = run(parameters, words, count, None, 3, counted)
    assert not any(compare(manifest, words, expected, received, 0))
    assert counted["failures"] == counted["parity_errors"] == 0


@pytest.mark.long
def test_failures_and_flipped_bits_are_counted(tmp_path):
    parameters, manifest, words, expected = prepared(tmp_path, "scan", 4)
    counted = {}
    received = run(parameters, words, len(groups_of(manifest, expected)), (5, 1, 0), 4, counted)
    fields = WordCodec(manifest).unpack_results(received)
    assert fields.failed.any()
    assert counted["failures"] == 1
    assert counted["parity_errors"] > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parity": True, "failure_cycles": 9}, "'failure_cycles' must be at least .*, not 9"),
        ({"parity": 1}, r"must be one of \(False, True\), not 1"),
        (
            {"parity": True, "architecture": HANDSHAKE},
            "needs parameter 'parity' to be False, not True: only the cores of 'splitjoin'",
        ),
    ],
)
def test_parity_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        JoinParameters.of(**changes)


def test_only_parameters_with_parity_say_so():
    parameters = checked(cores=2)
    assert parameters.to_dict()["engine"]["gates"]["parity"] is True
    assert JoinParameters.from_dict(parameters.to_dict()) == parameters
    assert not parameters.with_(parity=False).engine.parity
    without = parameters.with_(parity=False, failure_cycles=0)
    assert without.to_dict()["engine"]["gates"] is None
