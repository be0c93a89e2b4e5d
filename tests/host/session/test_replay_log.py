# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from host.reference.arrivals import Side
from host.session.failures import ReplayLog
from tests.host.failing_device import gated
from tests.host.small_bundles import write_manifest


@pytest.mark.parametrize("two", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_tuples_come_again_from_any_number_on(tmp_path, two, seed):
    rng = np.random.default_rng(seed)
    engine = {"engine": "index", "tuples_per_word": 2} if two == 2 else {}
    codec = WordCodec(Manifest.load(write_manifest(gated(**engine), tmp_path / "bundle")))
    log, every = ReplayLog(codec), []
    for _ in range(6):
        sides = rng.integers(0, 2, rng.integers(0, 30)).astype(np.uint8)
        keys, times = rng.integers(0, 99, len(sides)), np.arange(len(sides)) + len(every)
        log.append(
            codec.pack_tuples(sides, {"x": keys}, times),
            {side: int(np.count_nonzero(sides == side)) for side in Side},
        )
        every += zip(sides.tolist(), keys.tolist(), times.tolist(), strict=True)
    counts = [[side for side, *_ in every].count(n) for n in range(2)]
    first = {side: int(rng.integers(0, counts[side] + 1)) for side in Side}
    kept = log.kept
    log.forget(first)
    assert log.kept <= kept
    again = log.again(first)
    wanted, seen = [], [0, 0]
    for entry in every:
        if seen[entry[0]] >= first[Side(entry[0])]:
            wanted.append((*entry, seen[entry[0]]))
        seen[entry[0]] += 1
    sides, keys, times = codec.unpack_tuples(again.words)
    found = zip(sides.tolist(), keys["x"].tolist(), times.tolist(), strict=True)
    assert list(found) == [entry[:3] for entry in wanted]
    for side in Side:
        assert again.places[side].tolist() == [n for n, e in enumerate(wanted) if e[0] == side]
        assert again.numbers[side].tolist() == [e[3] for e in wanted if e[0] == side]
    log.forget({side: counts[side] for side in Side})
    assert log.kept <= 30
