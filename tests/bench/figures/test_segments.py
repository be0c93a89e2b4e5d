# SPDX-License-Identifier: Apache-2.0
"""Runs that measure a change of cores: equal but for the words that they compare."""

from dataclasses import replace

import pytest

from bench.figures import epochs
from bench.figures.epochs import LOADS, ROTATED, Load, change_words, counted, cycles_more
from hdl.presets import PRESETS
from host import Manifest
from host.errors import DeviceError
from sim.model.words import JoinWords
from tests.host.small_bundles import write_manifest

KINDS = ("turns", "closing", "nothing")


@pytest.fixture
def few(monkeypatch, tmp_path):
    """A folder for bundles, and few changes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(epochs, "CHANGES", 3)
    counted.cache_clear()
    yield Load(PRESETS["tiny"], 1)
    counted.cache_clear()


@pytest.mark.parametrize("load", [*LOADS.values(), *ROTATED.values()])
def test_a_change_has_as_many_words_of_every_kind(load, tmp_path):
    codec = JoinWords(Manifest.load(write_manifest(load.parameters, tmp_path / "bundle")))
    names = {}
    for kind in KINDS:
        words = [codec.unpack_control(word[0]) for word in change_words(codec, load, 1, kind)]
        names[kind] = [name for name, *_ in words]
    assert {len(of_kind) for of_kind in names.values()} == {load.parameters.cores + 1}
    assert names["turns"][-1] == "SEGMENT"
    assert names["closing"][-1] == "FLUSH"
    assert set(names["nothing"]) == {"BOUND_LOW"}


@pytest.mark.parametrize("load", LOADS.values())
def test_all_turns_have_come_round_at_a_change_but_groups_are_open(load):
    own = load.distance // 2  # tuples of each side
    assert own % load.parameters.cores == 0
    assert load.period == 1 or own % load.period
    assert 2 * own > load.parameters.capacity


def test_the_next_segment_begins_with_the_next_core():
    load = Load(PRESETS["tiny"], 1, rotates=True)
    assert [load.cores(number) for number in range(3)] == [[0, 1], [1, 0], [0, 1]]


@pytest.mark.long
def test_a_change_of_a_small_scan_costs_nothing_but_the_closing(few):
    found = {kind: cycles_more({"tiny": few}, kind, str)["tiny"] for kind in ("closing", "nothing")}
    assert found["closing"] == 0
    assert found["nothing"] > 0
    assert counted(few, "turns", str)["marks"] == 1
    assert counted(few, "closing", str)["marks"] == 4


@pytest.mark.long
def test_a_change_that_is_refused_is_told(few, monkeypatch):
    monkeypatch.setattr(Load, "distance", 2)
    with pytest.raises(DeviceError, match="dropped words"):
        counted(replace(few), "turns", str)
