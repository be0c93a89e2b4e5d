# SPDX-License-Identifier: Apache-2.0
from pathlib import Path
from random import Random
import re

import pytest

from bench.handshake import HANDSHAKE
import hdl
from hdl.engine import Search
from hdl.external.rows import MARGIN
from hdl.parameters import JoinParameters, KeyField
from hdl.presets import PRESETS, TWINS
from tests.timing import least_seconds


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cores": 0}, "Parameter 'cores' must be an integer of at least 1, not 0"),
        ({"lanes": -1}, "Parameter 'lanes' must be an integer of at least 1, not -1"),
        ({"sub_window": 2.5}, "Parameter 'sub_window' must be an integer of at least 1, not 2.5"),
        ({"fan_out": 1}, "Parameter 'fan_out' must be an integer of at least 2, not 1"),
        ({"fan_in": 1}, "Parameter 'fan_in' must be an integer of at least 2, not 1"),
        ({"timestamp_bits": 65}, "Parameter 'timestamp_bits' must be 0 to 64, not 65"),
        ({"keys": ()}, "Parameter 'keys' must name at least one field"),
        (
            {"keys": (KeyField(name="x", bits=4), KeyField(name="x", bits=4))},
            r"Key field names must differ, not \['x', 'x'\]",
        ),
        (
            {"keys": (KeyField(name="timestamp", bits=4),)},
            "Key field name 'timestamp' is taken by the timestamp",
        ),
        (
            {"engine": "index", "tuples_per_word": 3},
            r"Parameter 'tuples_per_word' must be one of \(1, 2\), not 3",
        ),
        (
            {"result_streams": 3},
            r"Parameter 'result_streams' must be one of \(1, 2\), not 3",
        ),
        ({"result_streams": 0}, r"Parameter 'result_streams' must be one of \(1, 2\), not 0"),
        (
            {"result_streams": 2, "architecture": HANDSHAKE},
            "Architecture 'bench.handshake:handshake' needs parameter 'result_streams' to be 1",
        ),
        *(
            ({"architecture": name}, f"must be 'splitjoin' or the importable .*, not '{name}'")
            for name in ("handshake", "bench.handshake:Handshake", "bench.handshake:star", "x:y")
        ),
        ({"comparator": "xor"}, "Parameter 'comparator' must be one of .*, not 'xor'"),
        (
            {"comparator": "custom"},
            "Comparator 'custom' needs parameter 'predicate' or 'where'",
        ),
        ({"engine": "hash"}, r"Parameter 'engine' must be one of \('scan', 'index'\), not 'hash'"),
        (
            {"engine": "index", "lanes": 2},
            "An index needs parameter 'lanes' to be 1, not 2: it reads one entry a cycle",
        ),
        (
            {"engine": "index", "comparator": "custom", "predicate": "a:b"},
            "a custom predicate takes a scan",
        ),
        (
            {"engine": "index", "bucket_bits": 25},
            "Parameter 'bucket_bits' must be 1 to 24, not 25",
        ),
        (
            {"digest_bits": 4, "comparator": "custom", "predicate": "hdl.presets:X32"},
            "to be one of .'band', 'equality'., not 'custom': nothing is known of the keys",
        ),
        (
            {"digest_bits": 3, "keys": (KeyField(name="x", bits=4), KeyField(name="y", bits=5))},
            "must be 4 to 24, at least 2 for each key field and at most 24, not 3",
        ),
        (
            {"digest_bits": 4, "comparator": "equality", "engine": "index"},
            "An index needs parameter 'digest_bits' to be None, not 4: a walk meets whole keys",
        ),
        (
            {
                "digest_bits": 9,
                "comparator": "equality",
                "keys": (KeyField(name="x", bits=4), KeyField(name="y", bits=5)),
            },
            "Parameter 'digest_bits' must be 1 to 8, fewer than a key has and at most 24, not 9",
        ),
        (
            {"digest_bits": 25, "comparator": "equality"},
            "Parameter 'digest_bits' must be 1 to 24, not 25",
        ),
        (
            {"probes": 5, "probe_bits": 2},
            "A group of 5 probes needs a probe index of 3 bits, not 2",
        ),
        ({"value_bits": -1}, "Parameter 'value_bits' must be 1 to 64, not -1"),
        (
            {"value_bits": 55, "sub_window": 200, "cores": 3},
            "at most 54, so that the sum of the 600 values of a window has 64 bits, not 55",
        ),
        (
            {"value_bits": 4, "keys": (KeyField(name="value", bits=4),)},
            "Key field name 'value' is taken by the value of a tuple",
        ),
        (
            {"value_bits": 4, "engine": "index"},
            "An index needs parameter 'value_bits' to be 0, not 4: it sends the matches of several",
        ),
        (
            {"tuples_per_word": 2},
            "A scan needs parameter 'tuples_per_word' to be 1, not 2: its passes take longer",
        ),
        (
            {"value_bits": 4, "tuples_per_word": 2},
            "A join aggregate needs parameter 'tuples_per_word' to be 1, not 2: its passes take",
        ),
        ({"store": "disk"}, r"Parameter 'store' must be one of \('chip', 'external'\), not 'disk'"),
        (
            {"memory_width": 64},
            "A scan needs .* to be None, not 64: it is for windows in external memory",
        ),
        (
            {"store": "external", "engine": "index"},
            "An index needs parameter 'store' to be 'chip', not 'external': it reads its memory at",
        ),
        (
            {"store": "external", "lanes": 1, "architecture": HANDSHAKE},
            "Architecture .* needs parameter 'store' to be 'chip', not 'external'",
        ),
        (
            {"store": "external", "digest_bits": 8, "comparator": "equality"},
            "needs parameter 'digest_bits' to be None, not 8",
        ),
        (
            {"store": "external", "failure_cycles": 1 << 20},
            "needs parameter 'failure_cycles' to be 0, not 1048576",
        ),
        (
            {"store": "external", "memory_width": 96},
            "Parameter 'memory_width' must be one of .8, 16, .* 1024., not 96",
        ),
        (
            {"store": "external", "memory_width": 64, "lanes": 3},
            "A beat of 64 bits has no room for a row of 3 keys of 32 bits; set 'lanes' to at",
        ),
        (
            {"store": "external", "memory_burst": 12},
            "Parameter 'memory_burst' must be one of .1, 2, .* 256., not 12",
        ),
        (
            {"store": "external", "memory_burst": 128},
            "A burst of 128 beats of 512 bits crosses a boundary of 4096 bytes; set",
        ),
        (
            {"store": "external", "memory_latency": 1 << 20},
            "Parameter 'memory_latency' must be 0 to 16384, not 1048576",
        ),
    ],
)
def test_bad_parameters_are_refused_by_rule_and_value(changes, message):
    with pytest.raises(ValueError, match=message):
        JoinParameters.of(**changes)


@pytest.mark.parametrize(
    ("name", "bits", "message"),
    [
        ("X", 8, "Key field name must be a lower-case identifier, not 'X'"),
        ("x", 0, "Key field 'x' must have 1 to 64 bits, not 0"),
        ("x", 65, "Key field 'x' must have 1 to 64 bits, not 65"),
    ],
)
def test_bad_key_fields_are_refused(name, bits, message):
    with pytest.raises(ValueError, match=message):
        KeyField(name=name, bits=bits)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_survive_a_round_trip(name):
    parameters = PRESETS[name]
    assert JoinParameters.from_dict(parameters.to_dict()) == parameters


@pytest.mark.parametrize("name", PRESETS)
def test_words_describe_the_whole_tree(name):
    assert JoinParameters.of(**PRESETS[name].words()) == PRESETS[name]


def test_those_of_external_windows_survive_a_round_trip_and_are_left_out_otherwise():
    external = JoinParameters.of(store="external", lanes=4, memory_width=128, memory_latency=9)
    engine = external.to_dict()["engine"]
    assert (engine["kind"], engine["memory_width"], engine["memory_latency"]) == (
        "external-scan", 128, 9,
    )  # fmt: skip
    assert JoinParameters.from_dict(external.to_dict()) == external
    assert not {"memory_width", "memory_burst"} & JoinParameters.of().words().keys()


def test_what_is_left_out_follows_from_other_parts():
    keys = (KeyField(name="x", bits=20),)
    external = JoinParameters.of(store="external", memory_width=128, keys=keys)
    assert external.engine.lanes == 6
    assert external.with_(rounds=True, lanes=None).engine.lanes == 4
    wide = tuple(KeyField(name=name, bits=60) for name in "abcdefghij")
    assert JoinParameters.of(store="external", keys=wide).engine.memory_width == 1024
    assert JoinParameters.of(engine="index", sub_window=100).engine.bucket_bits == 7
    gated = JoinParameters.of(parity=True)
    assert gated.engine.gates.failure_cycles == gated.longest_silence
    assert JoinParameters.of(probes=300).engine.probe_bits == 9


def test_what_followed_from_other_parts_follows_anew_from_changed_ones():
    index = JoinParameters.of(engine="index", sub_window=256)
    assert index.with_(sub_window=4096).engine.bucket_bits == 12
    assert index.with_(engine="scan").engine.kind == "scan"
    gated = JoinParameters.of(parity=True)
    for changes in ({"sub_window": 4096}, {"timestamp_bits": 32}, {"cores": 1}):
        changed = gated.with_(**changes)
        assert changed.engine.gates.failure_cycles == changed.longest_silence
    assert not gated.with_(parity=False).has_gates
    external = JoinParameters.of(store="external")
    assert external.with_(memory_width=64).engine.lanes == 2
    assert external.with_(store="chip").engine.lanes == 1
    assert PRESETS["paper"].with_(store="external").engine.lanes == 16


@pytest.mark.parametrize(
    "changes",
    [
        {"digest_bits": 8.0}, {"value_bits": 8.0}, {"engine": "index", "bucket_bits": 4.0},
        {"timestamp_bits": 1.0}, {"store": "external", "memory_latency": 8.0}, {"rounds": 0},
        {"rounds": 1.0}, {"parity": 1}, {"tuples_per_word": 1.0}, {"cores": "4"}, {"lanes": True},
        {"parity": True, "failure_cycles": 0}, {"digest_bits": 0},
        {"store": "external", "keys": [{"name": f"k{n}", "bits": 64} for n in range(17)]},
    ],
)  # fmt: skip
def test_numbers_of_another_type_and_without_a_meaning_are_refused(changes):
    with pytest.raises(ValueError, match="arameter|beat"):
        JoinParameters.of(**changes)


@pytest.mark.parametrize("sub_window", [1, 500, 100_000])
@pytest.mark.parametrize("burst", [1, 16, 64])
def test_a_ring_in_external_memory_holds_what_the_chip_holds(sub_window, burst):
    """Stores may wait for writes, so more than a burst is on the chip; the ring is no shorter."""
    parameters = JoinParameters.of(
        store="external", lanes=1, sub_window=sub_window, memory_burst=burst
    )
    assert parameters.ring_rows >= parameters.engine.recent_rows > burst + MARGIN
    assert parameters.ring_rows % burst == 0
    assert parameters.ring_rows >= sub_window + 3


def test_parameters_of_another_kit_are_refused():
    tiny, wrong = PRESETS["tiny"], r"has no parameters \['pipelined'\]"
    with pytest.raises(ValueError, match=wrong):
        JoinParameters.from_dict(tiny.to_dict() | {"pipelined": True})
    with pytest.raises(ValueError, match=wrong):
        tiny.with_(pipelined=True)
    values = tiny.to_dict()
    values["engine"]["kind"] = "hash"
    with pytest.raises(ValueError, match="has no engine 'hash'"):
        JoinParameters.from_dict(values)


#: In what a preset and its twin may differ.
SIZES = ("sub_window", "bucket_bits")


@pytest.mark.parametrize(("name", "twin"), TWINS.items())
def test_a_twin_is_the_same_accelerator_in_another_size(name, twin):
    original = PRESETS[name]
    same = {size: original.words()[size] for size in SIZES}
    assert PRESETS[twin].with_(**same) == original


@pytest.mark.parametrize("sub_window", [1, 2, 3, 7, 8, 500, 504])
@pytest.mark.parametrize("lanes", [1, 2, 3, 5])
@pytest.mark.parametrize("probes", [1, 4, 9])
def test_the_ring_holds_window_and_slack_wherever_the_window_starts(sub_window, lanes, probes):
    parameters = JoinParameters.of(cores=2, sub_window=sub_window, lanes=lanes, probes=probes)
    for lane in range(lanes):
        rows = (lane + sub_window + parameters.slack) // lanes
        assert rows < parameters.ring_rows - 1


@pytest.mark.parametrize(
    ("engine", "tuples_per_word", "expected"),
    [("scan", 1, False), ("index", 1, False), ("index", 2, True)],
)
def test_tuples_go_side_by_side_through_an_index(engine, tuples_per_word, expected):
    parameters = JoinParameters.of(engine=engine, tuples_per_word=tuples_per_word)
    assert parameters.side_by_side == expected
    assert parameters.lane == JoinParameters.of(engine=engine)


def test_an_arrangement_that_is_none_is_refused_with_the_cause():
    for name in (None, 5, ".x:y", "json", "json:dumps", "json:none", "nowhere.at.all:x", ":"):
        with pytest.raises(ValueError, match="'architecture' must be 'splitjoin' or the import"):
            JoinParameters.of(architecture=name)
    with pytest.raises(ValueError, match="No module named 'nowhere'"):
        JoinParameters.of(architecture="nowhere.at.all:x")


#: Values of each parameter, among which some that do not go with those of others.
CHOICES = {
    "cores": [1, 2, 5],
    "sub_window": [4, 64, 1_000],
    "keys": [
        (KeyField(name="x", bits=8),),
        (KeyField(name="x", bits=24), KeyField(name="y", bits=4)),
    ],
    "timestamp_bits": [0, 16],
    "comparator": ["band", "equality"],
    "engine": ["scan", "index"],
    "lanes": [1, 2, 3],
    "probes": [1, 4],
    "digest_bits": [None, 1, 6],
    "tuples_per_word": [1, 2],
    "result_streams": [1, 2],
    "rounds": [False, True],
    "failure_cycles": [0, 9, 1 << 24],
    "parity": [False, True],
    "clock_requests": [False, True],
    "store": ["chip", "external"],
    "value_bits": [0, 8],
    "architecture": ["splitjoin", HANDSHAKE],
}


def legal(chosen):
    """Return parameters, or None with the reason of their refusal."""
    try:
        return JoinParameters.of(**chosen), ""
    except ValueError as error:
        return None, str(error)


def test_of_random_parameters_each_is_legal_or_refused_with_its_reason():
    random, reasons = Random(57), []
    for _ in range(300):
        some = random.sample(sorted(CHOICES), 6)
        chosen = {name: random.choice(CHOICES[name]) for name in some}
        assert least_seconds(lambda chosen=chosen: legal(chosen), limit=0.1) < 0.1, chosen
        parameters, reason = legal(chosen)
        if reason:
            reasons.append(reason)
        else:
            assert JoinParameters.from_dict(parameters.to_dict()) == parameters
            assert isinstance(parameters.engine, Search)
            assert parameters.ring_rows >= parameters.window.sub_window // parameters.engine.lanes
    assert 30 < len(reasons) < 270
    assert all(any(name in reason for name in CHOICES) for reason in reasons), reasons


#: What code outside of a part asks which kind it is, and why.
ASKS = {
    "bench/figures/latency_model.py": "the paper's equation 6 has terms of a scan only",
    "bench/figures/cost_model.py": "the loads are those for which the model has terms",
    "formal/facts.py": "a proof says by itself what is legal, not by asking the engine",
    "sim/benches/shapes.py": "an index has so few entries and buckets that they fill",
    "spark_offload/cli/report.py": "the efficiency is that of comparators in rows and lanes",
}
#: The parts: what names engines and rules, and the manifest, which is the part of the host.
PARTS = ("hdl/parts.py", "host/protocol/manifest.py")


def test_outside_of_the_parts_nobody_asks_which_kind_they_are():
    root = Path(hdl.__file__).parents[1]
    kinds = re.compile(
        r"""(engine|predicate)\.kind ([!=]= |in )"""
        r"""|(\.|\[")(engine|comparator|store)("\])? ([!=]= |in )|is_external"""
    )
    found = [
        path.relative_to(root).as_posix()
        for top in ("hdl", "host", "sim", "spark_offload", "bench", "formal")
        for path in sorted((root / top).rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if kinds.search(line)
    ]
    assert sorted(name for name in found if name not in PARTS) == sorted(ASKS)
