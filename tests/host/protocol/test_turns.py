# SPDX-License-Identifier: Apache-2.0
"""Words that change which cores store, and the decoding of what comes after them."""

from dataclasses import replace

import numpy as np
import pytest

from host import CountWindow, Ordering, Side
from host.columns.encoding import EncodedBatch
from host.devices.software import SoftwareDevice
from host.errors import UsageError
from host.protocol.configuration import all_cores, segment_words
from host.session.decoder import ResultDecoder
from host.session.intake import Arrived, SideTuples
from sim.model.words import JoinWords
from tests.host.device_contract import converse
from tests.host.small_bundles import (
    BUNDLES,
    FLUSH,
    configuration,
    pack,
    random_tuples,
    write_manifest,
)

SIZE = 3


@pytest.fixture
def device(tmp_path):
    """A software device of three cores, all of which take turns."""
    return SoftwareDevice(write_manifest(BUNDLES["groups"], tmp_path / "bundle"))


def arrived(tuples, numbers):
    """Return tuples as the intake announces them; ``numbers`` counts those of each side."""
    sides = {}
    for side in Side:
        places = [at for at, step in enumerate(tuples) if step[0] == side.name]
        zeros = np.zeros(len(places), np.uint64)
        batch = EncodedBatch(
            first=numbers[side], rows=None, times=zeros, keys={}, valid=None, all_times=zeros
        )
        sides[side] = SideTuples(batch, 0, len(places), np.array(places, np.int64))
        numbers[side] += len(places)
    return Arrived(len(tuples), sides)


def met(tuples, bounds):
    """Return the pairs of ordinals (R, S) within the last ``SIZE`` tuples, one by one."""
    windows, counts, pairs = [[], []], [0, 0], []
    for name, keys, _ in tuples:
        side = "RS".index(name)
        for number, other in windows[1 - side]:
            r, s = (keys, other) if side == 0 else (other, keys)
            if all(bounds[0] <= r[field] - s[field] <= bounds[1] for field in r):
                own = counts[side], number
                pairs.append(own if side == 0 else own[::-1])
        windows[side] = [*windows[side], (counts[side], keys)][-SIZE:]
        counts[side] += 1
    return sorted(pairs)


@pytest.mark.parametrize("seed", range(20))
def test_pairs_are_the_same_whichever_cores_store(device, seed):
    rng = np.random.default_rng(seed)
    bounds = (-100, 100)
    tuples = random_tuples(BUNDLES["groups"], rng, 80, share_r=0.5, pace=1)
    converse(
        device,
        pack(
            device.manifest,
            [*configuration(BUNDLES["groups"], bounds=bounds, windows=[("WINDOW", SIZE)] * 2)],
        ),
        2,
    )
    decoder = ResultDecoder(device.manifest, Ordering(1), CountWindow(SIZE))
    codec = JoinWords(device.manifest)
    numbers, words = [0, 0], []
    for begin in range(0, 80, 20):
        part = tuples[begin : begin + 20]
        words.append(pack(device.manifest, part))
        decoder.stage(arrived(part, numbers))
        live = rng.permutation(3)[: rng.integers(1, 4)].tolist()
        words.append(segment_words(device.manifest, live, CountWindow(SIZE)))
        decoder.begin_segment(live)
    words.append(pack(device.manifest, [FLUSH]))
    decoder.flush()
    room = np.zeros((1 << 14, device.manifest.result_word.columns), np.uint64)
    every = np.concatenate(words)
    done = device.exchange(every, room, cycles=1)
    assert done.accepted == len(every)
    found, _ = decoder.decode(codec.split_words(room[: done.produced])[0])
    assert not decoder.faults
    pairs = [
        pair
        for some in found
        for pair in zip(some["left"].tolist(), some["right"].tolist(), strict=True)
    ]
    assert sorted(pairs) == met(tuples, bounds)


@pytest.mark.parametrize("live", [[], [3], [-1], [0, 0]])
def test_cores_must_exist_and_be_named_once(device, live):
    with pytest.raises(UsageError, match="each of 0 to 2"):
        segment_words(device.manifest, live, CountWindow(1))


def test_a_window_must_fit_the_live_cores(device):
    assert len(segment_words(device.manifest, [1, 0], CountWindow(10))) == 3
    with pytest.raises(UsageError, match="does not fit 2 cores, which hold 10"):
        segment_words(device.manifest, [1, 0], CountWindow(11))


def test_an_accelerator_without_the_operation_is_told(device):
    operations = {name: n for name, n in device.manifest.operations.items() if name != "SEGMENT"}
    older = replace(device.manifest, operations=operations)
    with pytest.raises(UsageError, match="no operation SEGMENT"):
        segment_words(older, [0], CountWindow(1))


def test_all_cores_store_again_in_the_order_of_their_numbers(device):
    codec = JoinWords(device.manifest)
    words = [codec.unpack_control(word) for word in all_cores(device.manifest)]
    assert [name for name, *_ in words] == ["CORE"] * 3 + ["SEGMENT"]
    assert [value for _, _, value in words[:3]] == [0, 1, 2]
    operations = {name: n for name, n in device.manifest.operations.items() if name != "SEGMENT"}
    assert not len(all_cores(replace(device.manifest, operations=operations)))
