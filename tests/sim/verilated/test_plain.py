# SPDX-License-Identifier: Apache-2.0
"""A library from the rewritten netlist and one from the bundle's own Verilog behave alike.

Both get the same random words with the same random stalls: every result word must come in the same
cycle, every input word be taken in the same cycle, and every counter end at the same number.
"""

import shutil

import numpy as np
import pytest

from hdl.bundle import NETLIST, write_bundle
from hdl.parameters import JoinParameters, KeyField
from hdl.presets import PRESETS
from host.devices import Stamps
from host.devices.simulated import SimulatedDevice
from host.protocol.codecs import WordCodec
from sim.verilated.library import build_library
from sim.verilated.model import simulated_text
from tests.sim.verilated.test_words import SHAPES as WORDS

X, Y = KeyField(name="x", bits=8), KeyField(name="y", bits=40)
UNSIGNED = KeyField(name="u", bits=11, signed=False)
#: Small accelerators of every preset and with every feature.
SHAPES = {
    "scan": JoinParameters(cores=2, sub_window=12, keys=(X,), timestamp_bits=12, lanes=2, probes=2),
    "index": WORDS["index"],
    "index, many probes": JoinParameters(
        cores=1, sub_window=48, keys=(X, Y), engine="index", probes=32, bucket_bits=6,
    ),
    "tiny": PRESETS["tiny"],
    "demo": PRESETS["demo"].with_(sub_window=12),
    "demo-index": PRESETS["demo-index"].with_(sub_window=300, bucket_bits=8),
    "paper": PRESETS["paper"].with_(sub_window=6),
    "ecp5-equality": PRESETS["ecp5-equality"].with_(sub_window=32),
    "ecp5-index": PRESETS["ecp5-index"].with_(sub_window=60, bucket_bits=5),
    "ecp5-band": PRESETS["ecp5-band"].with_(sub_window=52),
    "ecp5-band-digest": PRESETS["ecp5-band-digest"].with_(sub_window=30),
    "one core": JoinParameters(cores=1, sub_window=9, keys=(X,)),
    "three cores": JoinParameters(
        cores=3, sub_window=8, keys=(X, Y), timestamp_bits=16, lanes=2, probes=4, fan_in=2,
    ),
    "four cores": JoinParameters(cores=4, sub_window=5, keys=(UNSIGNED,), fan_out=2, fan_in=2),
    "five cores": JoinParameters(cores=5, sub_window=4, keys=(X,), probes=3, timestamp_bits=9),
    "scan, three lanes": JoinParameters(
        cores=3, sub_window=12, keys=(X, UNSIGNED), lanes=3, probes=2,
    ),
    "equality": JoinParameters(cores=2, sub_window=8, keys=(X, Y), comparator="equality", lanes=2),
    "digest": JoinParameters(
        cores=2, sub_window=16, keys=(KeyField(name="x", bits=64),), comparator="equality",
        digest_bits=5, lanes=2, probes=4,
    ),
    "digests of a band": JoinParameters(
        cores=2, sub_window=16, keys=(X, Y), digest_bits=9, lanes=3, probes=4, timestamp_bits=12,
    ),
    "custom": JoinParameters(
        cores=2, sub_window=8, keys=(X,), comparator="custom", lanes=2, probes=2,
        predicate="tests.hdl.test_accelerator:nearby",
    ),
    "index, equality": JoinParameters(
        cores=2, sub_window=16, keys=(X, UNSIGNED), comparator="equality", engine="index",
        probes=4, timestamp_bits=14, bucket_bits=3,
    ),
    "index, three cores": JoinParameters(
        cores=3, sub_window=16, keys=(X, UNSIGNED), engine="index", probes=2, bucket_bits=3,
        timestamp_bits=12, fan_in=2,
    ),
    "index, two cores, two in a word": JoinParameters(
        cores=2, sub_window=40, keys=(X,), comparator="equality", engine="index", probes=8,
        timestamp_bits=20, tuples_per_word=2,
    ),
    "index, large": JoinParameters(
        cores=1, sub_window=1 << 12, keys=(X, Y), engine="index", probes=32,
    ),
}  # fmt: skip
#: Cycles of a conversation, its rounds, and words in each.
CYCLES, ROUNDS, WORDS = 40_000, 6, 250


def random_round(manifest, generator):
    """Return a query, tuples with few different keys, other operations, words without meaning."""
    codec, columns = WordCodec(manifest), manifest.input_word.columns
    times = np.cumsum(generator.integers(0, 2, WORDS)) if manifest.timestamp_bits else None
    keys = {key.name: generator.integers(max(key.low, -2), 4, WORDS) for key in manifest.keys}
    words = codec.pack_tuples(generator.integers(0, 2, WORDS), keys, times)
    for place in np.flatnonzero(generator.random(len(words)) < 0.02):
        name = generator.choice(sorted(manifest.operations))
        value = generator.choice([0, 1, 2, 7, 1 << 11, -1])
        words[place] = codec.pack_control(name, int(generator.integers(0, 2)), value)
    for place in np.flatnonzero(generator.random(len(words)) < 0.004):
        number = int.from_bytes(generator.bytes(8 * columns), "little")
        number &= (1 << manifest.input_word.bits) - 1
        words[place] = np.frombuffer(number.to_bytes(8 * columns, "little"), "<u8")
    query = [codec.pack_control("PRECISION", 0, generator.integers(0, 5))]
    for field in range(len(manifest.keys)):
        query.append(codec.pack_control("BOUND_LOW", field, generator.integers(-1, 1)))
        query.append(codec.pack_control("BOUND_HIGH", field, generator.integers(0, 2)))
    return [*query, codec.pack_control("CLEAR"), words, codec.pack_control("FLUSH")]


def converse(bundle, seed, stall_in, stall_out):
    """Return results and cycles of a random stream, and the counters.

    Memories begin with zeros: what they hold otherwise is drawn in another order by each library,
    and may cost an index cycles.
    """
    with SimulatedDevice(bundle, seed=0, stall_in=stall_in, stall_out=stall_out) as device:
        generator = np.random.default_rng(seed)
        words = np.concatenate(
            [part for _ in range(ROUNDS) for part in random_round(device.manifest, generator)]
        )
        results = np.zeros((1 << 14, device.manifest.result_word.columns), np.uint64)
        stamps = Stamps.for_arrays(words, results)
        found, sent, cycles = [], 0, 0
        while cycles < CYCLES:  # a call ends with each mark
            done = device.exchange(words[sent:], results, cycles=CYCLES - cycles, stamps=stamps)
            found += results[: done.produced].tolist()
            found += stamps.produced[: done.produced].tolist()
            found += stamps.accepted[: done.accepted].tolist()
            sent, cycles = sent + done.accepted, cycles + done.cycles
        return found, sent, device.counters()


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_words_cycles_and_counters_are_those_of_the_plain_library(shape, tmp_path):
    write_bundle(SHAPES[shape], tmp_path / "rewritten")
    shutil.copytree(tmp_path / "rewritten", tmp_path / "plain")
    simulated_text((tmp_path / "rewritten" / NETLIST).read_text())  # it is known, or this raises
    build_library(tmp_path / "rewritten")
    build_library(tmp_path / "plain", plain=True)
    for seed, stalls in enumerate([(0, 0), (60, 120), (200, 30)]):
        rewritten = converse(tmp_path / "rewritten", seed, *stalls)
        assert converse(tmp_path / "plain", seed, *stalls) == rewritten
        found, sent, counters = rewritten
        assert sent > WORDS, "more than one round of words is taken"
        assert len(found) > sent + 200, "there are results"
        assert counters["tuples_r"]
