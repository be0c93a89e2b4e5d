# SPDX-License-Identifier: Apache-2.0
import pytest

from host import Bounds, CountWindow, Ordering
from host.exchange.configuration import configuration
from host.hardware.cells import Cell
from host.words import WordCodec
from tests.host.tables import manifest_of


@pytest.mark.parametrize("engine", ["scan", "index"])
def test_an_index_is_told_whether_keys_are_distinct(tmp_path, engine):
    manifest = manifest_of(tmp_path, engine=engine)
    words = configuration(manifest, {}, CountWindow(9), Ordering.outer(), (False, True))
    codec = WordCodec(manifest)
    controls = [codec.unpack_control(word) for word in words]
    told = [control[1:] for control in controls if control[0] == "DISTINCT"]
    assert told == ([(0, 0), (1, 1)] if engine == "index" else [])
    assert [control[0] for control in controls[-4:]] == ["WINDOW", "WINDOW", "PRECISION", "CLEAR"]


@pytest.mark.parametrize("digest_bits", [None, 8])
def test_the_digests_of_a_band_are_told_their_cells(tmp_path, digest_bits):
    manifest = manifest_of(tmp_path, digest_bits=digest_bits)
    name = manifest.keys[0].name
    words = configuration(manifest, {name: Bounds(-3, 4)}, CountWindow(9), Ordering.outer())
    codec = WordCodec(manifest)
    controls = [codec.unpack_control(word) for word in words]
    told = [control[1:] for control in controls if control[0] == "CELL"]
    if digest_bits is None:
        assert told == []
    else:
        assert told[0] == (0, Cell(0, 3).value(manifest))
        assert len(told) == len(manifest.digests.parts)
