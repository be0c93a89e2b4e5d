# SPDX-License-Identifier: Apache-2.0
"""The decoder of results, alone: whatever the portions, its pairs are those of the oracle."""

from hypothesis import assume, given
from hypothesis import strategies as st
import numpy as np
import pytest

from host import Arrivals, CountWindow, DifferenceBand, Ordering, Side, TimeWindow
from host.capacity import largest_window
from host.device.software import SoftwareDevice
from host.encode import EncodedBatch
from host.errors import DeviceError
from host.predicate import Bounds
from host.streams.intake import Arrived, SideTuples
from host.streams.results import Faults, ResultDecoder
from host.words import WordCodec
from tests.host.bundles import BUNDLES, FLUSH, configuration, pack, random_tuples, write_manifest
from tests.host.device_contract import converse
from tests.host.naive import naive_join

NAMES = ("plain", "tiny", "groups")
BOUNDS = (-2, 2)


@pytest.fixture(scope="module")
def devices(tmp_path_factory):
    """Software devices by the names of their bundles."""
    folder = tmp_path_factory.mktemp("bundles")
    return {name: SoftwareDevice(write_manifest(BUNDLES[name], folder / name)) for name in NAMES}


def arrived(numbers, begin, tuples, rows, valid):
    """Return what the intake says of ``tuples``, of which ``numbers`` of each side came before."""
    sides = {}
    for side in Side:
        places = np.array([at for at, step in enumerate(tuples) if step[0] == side.name], np.int64)
        first = numbers[side]
        batch = EncodedBatch(
            first=first,
            rows=None if rows is None else rows[side][first : first + len(places)],
            times=np.zeros(len(places), np.uint64),
            keys={},
            valid=None if valid is None else valid[side][first : first + len(places)],
            all_times=np.zeros(0, np.uint64),
        )
        sides[side] = SideTuples(batch, 0, len(places), places)
        numbers[side] += len(places)
    return Arrived(len(tuples), sides)


def fits(tuples, lifespan, capacity):
    """Whether no side ever has more tuples in its window than the cores hold."""
    times = [[time for name, _, time in tuples if name == side.name] for side in Side]
    return all(
        largest_window(np.array(own, np.uint64), lifespan, capacity)[1] is None for own in times
    )


@given(
    st.sampled_from(NAMES),
    st.integers(0, 99),
    st.integers(0, 120),
    st.sampled_from([0.1, 0.5, 0.9]),
    st.integers(0, 5),
    st.sampled_from([("WINDOW", 3), ("WINDOW", 4), ("LIFESPAN", 2)]),
    st.integers(1, 40),
    st.booleans(),
    st.booleans(),
)
def test_pairs_are_rows_of_both_sides_whatever_the_portions(
    devices, name, seed, count, share_r, period, window, portion, left_out, some_invalid
):
    device, parameters = devices[name], BUNDLES[name]
    if not parameters.timestamp_bits:
        window = ("WINDOW", 3)
    rng = np.random.default_rng(seed)
    tuples = random_tuples(parameters, rng, count, share_r=share_r, pace=2)
    assume(window[0] == "WINDOW" or fits(tuples, window[1], parameters.capacity))
    script = [*configuration(parameters, bounds=BOUNDS, windows=[window] * 2, period=period)]
    converse(device, pack(device.manifest, script), 2)
    words = converse(device, pack(device.manifest, [*tuples, FLUSH]), 1)
    codec = WordCodec(device.manifest)
    results = codec.split_words(words)[0]

    # Rows that were left out, and rows that may not match, as the intake tells.
    rows = valid = None
    if left_out:
        rows = [np.cumsum(rng.integers(1, 3, count)) for _ in Side]
    if some_invalid:
        valid = [rng.random(count) < 0.8 for _ in Side]
    size = window[1]
    kept = CountWindow(size) if window[0] == "WINDOW" else TimeWindow(size)
    decoder = ResultDecoder(device.manifest, Ordering(period), kept)
    numbers, pairs = [0, 0], []
    for begin in range(0, count, portion):
        part = tuples[begin : begin + portion]
        decoder.stage(arrived(numbers, begin, part, rows, valid))
    decoder.flush()
    assert decoder.arrivals == count
    stamps = np.arange(len(results), dtype=np.uint64)
    for begin in range(0, len(results), portion):
        found, _ = decoder.decode(results[begin : begin + portion], stamps[begin:][:portion])
        for some in found:
            columns = (some[name].tolist() for name in ("probe", "stored", "left", "right"))
            pairs += zip(*columns, strict=True)
    assert decoder.complete == count
    assert decoder.marks == 1
    assert not decoder.faults

    side = np.array(["RS".index(step[0]) for step in tuples], np.uint8)
    keys = {
        key.name: np.array([step[1][key.name] for step in tuples], np.int64)
        for key in parameters.keys
    }
    arrivals = Arrivals(side, keys, np.array([step[2] for step in tuples], np.int64))
    band = DifferenceBand({key.name: Bounds(*BOUNDS) for key in parameters.keys})
    ordinal = arrivals.ordinals

    def row(at):
        number = int(ordinal[at])
        return number if rows is None else int(rows[side[at]][number])

    want = []
    for probe, stored in naive_join(arrivals, band_holds(band), (kept, kept)):
        if valid is not None and not (
            valid[side[probe]][ordinal[probe]] and valid[side[stored]][ordinal[stored]]
        ):
            continue
        r, s = (probe, stored) if side[probe] == Side.R else (stored, probe)
        want.append((probe, int(ordinal[stored]), row(r), row(s)))
    assert sorted(pairs) == sorted(want)


def band_holds(band):
    def predicate(r, s):
        return all(
            bounds.low <= r[name] - s[name] <= bounds.high for name, bounds in band.bounds.items()
        )

    return predicate


def test_what_a_device_cannot_have_meant_is_an_error(devices):
    device = devices["tiny"]
    codec = WordCodec(device.manifest)
    one = np.ones(1, np.int64)

    def decoder():
        fresh = ResultDecoder(device.manifest, Ordering.outer(), CountWindow(3))
        tuples = [("R", {"x": 0}, 0), ("S", {"x": 0}, 0)]
        fresh.stage(arrived([0, 0], 0, tuples, None, None))
        return fresh

    pair = codec.pack_pairs(one, one, 0 * one, 0 * one, 0 * one)
    with pytest.raises(DeviceError, match="answered to tuple 1 of side S, but only 1 were sent"):
        decoder().decode(pair)
    star = codec.pack_punctuation(codec.star, 0, 0, 0)
    with pytest.raises(DeviceError, match="more stars of side R"):
        decoder().decode(np.concatenate([star, star]))
    fault = codec.pack_punctuation(codec.star, 0, 2, 0)
    told = decoder()
    assert told.decode(np.concatenate([fault, pair]))[0] == []
    assert told.faults == Faults(overflow=(Side.S,))
