# SPDX-License-Identifier: Apache-2.0
"""A library from the rewritten netlist and one from the bundle's own Verilog behave alike.

Both get the same random words with the same random stalls: every result word must come in the same
cycle, every input word be taken in the same cycle, and every counter end at the same number.
"""

import shutil

import numpy as np
import pytest

from hdl.aggregate.aggregate_parameters import AGGREGATE_PRESETS
from hdl.bundle import NETLIST, write_bundle
from hdl.parameters import JoinParameters, KeyField
from hdl.presets import PRESETS
from host.devices.simulated import LIBRARY
from host.errors import BuildError
from host.protocol.manifest import load_manifest
from sim.verilated import library
from sim.verilated.library import build_library
from sim.verilated.lockstep import compare_in_lockstep
from sim.verilated.model import simulated_text
from tests.sim.verilated.test_words import SHAPES as WORDS

X, Y = KeyField(name="x", bits=8), KeyField(name="y", bits=40)
UNSIGNED = KeyField(name="u", bits=11, signed=False)
#: Small accelerators of every preset and with every feature.
SHAPES = {
    "scan": JoinParameters.of(
        cores=2, sub_window=12, keys=(X,), timestamp_bits=12, lanes=2, probes=2,
    ),
    "index": WORDS["index"],
    "index, many probes": JoinParameters.of(
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
    "one core": JoinParameters.of(cores=1, sub_window=9, keys=(X,)),
    "three cores": JoinParameters.of(
        cores=3, sub_window=8, keys=(X, Y), timestamp_bits=16, lanes=2, probes=4, fan_in=2,
    ),
    "four cores": JoinParameters.of(cores=4, sub_window=5, keys=(UNSIGNED,), fan_out=2, fan_in=2),
    "five cores": JoinParameters.of(cores=5, sub_window=4, keys=(X,), probes=3, timestamp_bits=9),
    "scan, three lanes": JoinParameters.of(
        cores=3, sub_window=12, keys=(X, UNSIGNED), lanes=3, probes=2,
    ),
    "equality": JoinParameters.of(
        cores=2, sub_window=8, keys=(X, Y), comparator="equality", lanes=2,
    ),
    "digest": JoinParameters.of(
        cores=2, sub_window=16, keys=(KeyField(name="x", bits=64),), comparator="equality",
        digest_bits=5, lanes=2, probes=4,
    ),
    "digests of a band": JoinParameters.of(
        cores=2, sub_window=16, keys=(X, Y), digest_bits=9, lanes=3, probes=4, timestamp_bits=12,
    ),
    "custom": JoinParameters.of(
        cores=2, sub_window=8, keys=(X,), comparator="custom", lanes=2, probes=2,
        predicate="tests.hdl.test_accelerator:nearby",
    ),
    "index, equality": JoinParameters.of(
        cores=2, sub_window=16, keys=(X, UNSIGNED), comparator="equality", engine="index",
        probes=4, timestamp_bits=14, bucket_bits=3,
    ),
    "index, three cores": JoinParameters.of(
        cores=3, sub_window=16, keys=(X, UNSIGNED), engine="index", probes=2, bucket_bits=3,
        timestamp_bits=12, fan_in=2,
    ),
    "index, two cores, two in a word": JoinParameters.of(
        cores=2, sub_window=40, keys=(X,), comparator="equality", engine="index", probes=8,
        timestamp_bits=20, tuples_per_word=2,
    ),
    "index, large": JoinParameters.of(
        cores=1, sub_window=1 << 12, keys=(X, Y), engine="index", probes=32,
    ),
}  # fmt: skip
#: Accelerators of each kind, which answer with other words than pairs of a SplitJoin.
KINDS = {
    "scan": SHAPES["scan"],
    "index, two in a word": SHAPES["index, two cores, two in a word"],
    "join aggregate": PRESETS["tiny-join-aggregate"],
    "aggregate": AGGREGATE_PRESETS["tiny-aggregate"],
    "gates": SHAPES["scan"].with_(failure_cycles=1 << 12, parity=True),
    "two result ports": SHAPES["scan"].with_(result_streams=2),
    "external windows": JoinParameters.of(
        cores=2, sub_window=16, keys=(X,), store="external", memory_width=32, memory_burst=4,
    ),
    "handshake": JoinParameters.of(
        cores=3, sub_window=8, keys=(X,), architecture="bench.handshake:handshake",
    ),
}  # fmt: skip


def built(parameters, folder):
    """Return the manifest of a bundle that has been built, both ways, and the two libraries."""
    write_bundle(parameters, folder / "rewritten")
    shutil.copytree(folder / "rewritten", folder / "plain")
    simulated_text((folder / "rewritten" / NETLIST).read_text())  # it is known, or this raises
    libraries = [
        build_library(folder / "rewritten"),
        build_library(folder / "plain", plain=True),
    ]
    return load_manifest(folder / "rewritten"), libraries


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("shape", SHAPES)
def test_words_cycles_and_counters_are_those_of_the_plain_library(shape, tmp_path):
    manifest, libraries = built(SHAPES[shape], tmp_path)
    for held in compare_in_lockstep(*libraries, manifest, what=shape, cycles=200_000):
        assert len(held.accepted) > 1_000, "words are taken"
        assert len(held.results) > 1_000, "there are results"
        assert held.counters["tuples_r"]


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", KINDS)
def test_accelerators_of_every_kind_answer_in_lockstep(kind, tmp_path):
    manifest, libraries = built(KINDS[kind], tmp_path)
    for held in compare_in_lockstep(*libraries, manifest, what=kind):
        named = manifest.result_word["kind"]
        kinds = {value: name for name, value in manifest.result_kinds.items()}
        found = held.results[:, named.offset // 64] >> np.uint64(named.offset % 64)
        seen = {kinds[int(value)] for value in np.unique(found & np.uint64((1 << named.bits) - 1))}
        assert seen - {"MARK", "STAR"}, "there are results"


@pytest.mark.few(1)
@pytest.mark.parametrize("share", [0.3, 0.9])
@pytest.mark.parametrize(("operator", "other"), [(" + ", " - "), (" == ", " != ")])
def test_a_text_that_was_rewritten_wrongly_is_not_used(
    operator, other, share, tmp_path, monkeypatch
):
    """One operator is another one somewhere, so the build stops, and says where they differ.

    (Some places tell nothing: of one bit, a sum is a difference.)
    """
    write_bundle(SHAPES["scan"], tmp_path / "bundle")
    right = library.simulated_text

    def wrong(netlist):
        parts = right(netlist).split(operator)
        place = int(share * len(parts))
        return operator.join(parts[:place]) + other + operator.join(parts[place:])

    monkeypatch.setattr(library, "simulated_text", wrong)
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path / "cache"))
    with pytest.raises(BuildError, match="what is compiled is not what is shipped.*differ in"):
        build_library(tmp_path / "bundle")
    assert not (tmp_path / "bundle" / LIBRARY).exists()
