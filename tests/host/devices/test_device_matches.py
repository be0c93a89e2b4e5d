# SPDX-License-Identifier: Apache-2.0
"""The model of join aggregates, by the definition of their answers."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from hdl.bundle import write_bundle
from hdl.manifest import describe
from hdl.presets import PRESETS
from hdl.verilog.lint import lint
from host import open_device
from host.devices.software import SoftwareDevice
from host.errors import ManifestError
from host.protocol.codecs import WordCodec
from host.protocol.manifest import (
    JoinAggregateManifest,
    Manifest,
    load_join_manifest,
    load_manifest,
)
from tests.host.naive_matches import NaiveMatches

TINY = PRESETS["tiny-join-aggregate"]


def manifest_of(parameters):
    values = describe(parameters, "", verilog_file="")
    return JoinAggregateManifest.from_dict(json.loads(json.dumps(values)))


def answers(device, words, marks):
    """All results of a device for some words, which it answers with so many marks."""
    codec = WordCodec(device.manifest)
    results = np.zeros((64, device.manifest.result_word.columns), np.uint64)
    received, sent = [], 0
    while marks:
        done = device.exchange(words[sent:], results, cycles=10_000)
        sent += done.accepted
        received.append(results[: done.produced].copy())
        marks -= int(codec.marks(received[-1]).sum())
        assert done.accepted or done.produced
    return codec.unpack_results(np.concatenate(received))


TUPLES = st.lists(
    st.tuples(st.integers(0, 1), st.integers(-9, 9), st.integers(0, 3), st.integers(-128, 127)),
    max_size=60,
)


@pytest.mark.parametrize("timed", [False, True], ids=["rows", "time"])
@settings(max_examples=40)
@given(tuples=TUPLES, period=st.integers(0, 2), width=st.integers(0, 9))
def test_the_model_answers_by_definition(timed, tuples, period, width):
    device = SoftwareDevice(manifest_of(TINY.with_(sub_window=40)))
    codec = WordCodec(device.manifest)
    size = 1 + 2 * width
    naive = NaiveMatches((-width, 2), **{"lifespan" if timed else "size": size})
    words = [
        codec.pack_control("PRECISION", 0, period),
        codec.pack_control("BOUND_LOW", 0, -width),
        codec.pack_control("BOUND_HIGH", 0, 2),
        codec.pack_control("LIFESPAN" if timed else "WINDOW", 1, size),
    ]
    expected, now = [], 0
    for side, key, later, value in tuples:
        now += later
        words.append(
            codec.pack_tuples(
                np.array([side], np.uint8), {"x": [key]}, np.array([now]), np.array([value])
            )
        )
        answer = naive.tuple(side, key, now, value)
        expected += [] if answer is None else [answer]
    words.append(codec.pack_control("FLUSH"))
    found = answers(device, np.concatenate(words), 2)
    kinds = device.manifest.result_kinds
    is_value = found.kind == kinds["VALUE"]
    columns = (found.values[name][is_value].tolist() for name in found.values)
    assert [
        (count, total, least if count else None, most if count else None)
        for count, total, least, most in zip(*columns, strict=True)
    ] == expected
    stars = int((found.kind == kinds["STAR"]).sum())
    assert stars == (-(-len(expected) // period) if period else bool(expected))
    assert not found.overflow.any()
    assert not found.disorder.any()


@pytest.mark.long
def test_a_bundle_of_it_is_read_as_what_it_is_and_its_verilog_is_clean(tmp_path):
    place = tmp_path / "bundle"
    write_bundle(TINY, place)
    for manifest in (load_manifest(place), load_join_manifest(place)):
        assert isinstance(manifest, JoinAggregateManifest)
        assert (manifest.value_bits, manifest.probe_bits, manifest.capacity) == (8, 2, 16)
    assert lint(place / "splitjoin.v") == ""
    with pytest.raises(ManifestError, match="of format 9, this kit reads 8 here"):
        Manifest.load(place)
    with open_device(f"software:{place}") as device:
        codec = WordCodec(device.manifest)
        words = codec.pack_tuples(np.array([1, 0], np.uint8), {"x": [3, 3]}, value=[-7, 0])
        found = answers(device, np.concatenate([words, codec.pack_control("FLUSH")]), 1)
        assert found.values["total"][0] == -7
        assert device.counters()["results"] == 1


def test_faults_are_told():
    device = SoftwareDevice(manifest_of(TINY))
    codec = WordCodec(device.manifest)
    words = [
        codec.pack_control("LIFESPAN", 1, 99),
        codec.pack_tuples(np.ones(17, np.uint8), {"x": np.zeros(17, np.int64)}, np.arange(17)),
        codec.pack_control("FLUSH"),
        codec.pack_tuples(np.zeros(1, np.uint8), {"x": [0]}, np.array([3])),
        codec.pack_control("BOUND_LOW", 5),
        codec.pack_control("FLUSH"),
    ]
    found = answers(device, np.concatenate(words), 2)
    assert found.overflow.tolist() == [2, 2]
    assert found.disorder.tolist() == [False, True]
    assert found.illegal.tolist() == [False, True]
