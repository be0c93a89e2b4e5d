# SPDX-License-Identifier: Apache-2.0
import pytest

from host import CountWindow, Ordering
from host.streams.configuration import configuration
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
