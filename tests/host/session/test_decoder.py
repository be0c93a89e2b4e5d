# SPDX-License-Identifier: Apache-2.0
"""The decoder of results, alone: whatever the portions, its pairs are those of the oracle."""

from hypothesis import assume, given
from hypothesis import strategies as st
import numpy as np
import pytest

from host import Arrivals, CountWindow, DifferenceBand, Ordering, Side, TimeWindow
from host.columns.encoding import EncodedBatch
from host.devices.software import SoftwareDevice
from host.errors import DeviceError
from host.protocol.segments import largest_window
from host.protocol.storage import StorageRule
from host.reference.predicate import Bounds
from host.session.decoder import Faults, ResultDecoder
from host.session.intake import Arrived, SideTuples
from sim.model.words import JoinWords
from tests.host.device_contract import converse
from tests.host.naive import naive_join
from tests.host.small_bundles import (
    BUNDLES,
    FLUSH,
    configuration,
    pack,
    random_tuples,
    write_manifest,
)

NAMES = ("plain", "tiny", "groups")
BOUNDS = (-2, 2)


@pytest.fixture(scope="module")
def devices(tmp_path_factory):
    """Software devices by the names of their bundles."""
    folder = tmp_path_factory.mktemp("bundles")
    return {name: SoftwareDevice(write_manifest(BUNDLES[name], folder / name)) for name in NAMES}


class Intake:
    """Says of tuples what the intake would, of batches that have some rows more in front.

    Parameters
    ----------
    rows : pair of array
        Row of each tuple, by side.
    valid : pair of array
        Which tuples may match, by side.
    """

    def __init__(self, rows, valid, rng):
        self.rows, self.valid, self.rng = rows, valid, rng
        self.numbers = [0, 0]

    def arrived(self, tuples):
        """Return the next tuples as announced to the decoder."""
        sides = {}
        for side in Side:
            places = [at for at, step in enumerate(tuples) if step[0] == side.name]
            if places or self.rng.random() < 0.5:
                batch, lead = self._batch(side, len(places))
                sides[side] = SideTuples(
                    batch, lead, lead + len(places), np.array(places, np.int64)
                )
                self.numbers[side] += len(places)
        return Arrived(len(tuples), sides)

    def _batch(self, side, count):
        number = self.numbers[side]
        rows = self.rows[side][number : number + count]
        valid = self.valid[side][number : number + count]
        lead, behind = self.rng.integers(0, 3, 2)
        first = int(rows[0]) if count else number
        lead = min(int(lead), first)
        in_turn = np.array_equal(rows, first + np.arange(count))
        junk = np.zeros(lead, np.int64), np.zeros(behind, np.int64)
        batch = EncodedBatch(
            first=first - lead,
            rows=None if in_turn else np.concatenate([junk[0], rows, junk[1]]),
            times=np.zeros(lead + count + behind, np.uint64),
            keys={},
            valid=None if valid.all() else np.concatenate([junk[0] == 1, valid, junk[1] == 1]),
            all_times=np.zeros(0, np.uint64),
        )
        return batch, lead


def plain_intake(count):
    """Return an intake that has left out no row."""
    rng = np.random.default_rng(0)
    return Intake([np.arange(count)] * 2, [np.ones(count, np.bool_)] * 2, rng)


def answers(device, words):
    """Return the results of input words, all there are so far."""
    room = np.zeros((1 << 14, device.manifest.result_word.columns), np.uint64)
    done = device.exchange(words, room, cycles=1)
    assert done.accepted == len(words)
    assert done.produced < len(room)
    return JoinWords(device.manifest).split_words(room[: done.produced])[0]


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
    st.integers(1, 40),
    st.integers(0, 60),
    st.sampled_from([1.0, 0.8]),
)
def test_pairs_are_rows_of_both_sides_whatever_the_portions(
    devices, name, seed, count, share_r, period, window, portion, taken, left_out, share_valid
):
    device, parameters = devices[name], BUNDLES[name]
    if not parameters.timestamp_bits:
        window = ("WINDOW", 3)
    period = period or 1 << parameters.engine.probe_bits  # without stars, probes have no numbers
    rng = np.random.default_rng(seed)
    tuples = random_tuples(parameters, rng, count, share_r=share_r, pace=2)
    assume(window[0] == "WINDOW" or fits(tuples, window[1], parameters.capacity))
    script = [*configuration(parameters, bounds=BOUNDS, windows=[window] * 2, period=period)]
    converse(device, pack(device.manifest, script), 2)

    # From some row on, rows are left out; some tuples may match nothing, as they have a null.
    gaps = np.where(np.arange(count) < left_out, 1, rng.integers(1, 3, (2, count)))
    rows = np.cumsum(gaps, axis=1) - 1
    valid = rng.random((2, count)) < np.where(np.arange(count) < left_out // 2, 1, share_valid)
    size = window[1]
    kept = CountWindow(size) if window[0] == "WINDOW" else TimeWindow(size)
    decoder = ResultDecoder(device.manifest, Ordering(period), kept)
    codec = JoinWords(device.manifest)
    intake = Intake(rows, valid, rng)
    side = np.array(["RS".index(step[0]) for step in tuples], np.uint8)
    results, pairs, starred = np.zeros((0, codec.result.columns), np.uint64), [], {}

    def decode():
        """Decode what the device has sent, some results at a time."""
        begin = len(stamps) - len(news)
        for first in range(begin, len(results), taken):
            part = slice(first, first + taken)
            complete, oldest = decoder.complete, [decoder.oldest_row(side) for side in Side]
            assert complete == next((at for at in range(count) if at not in starred), count)
            found, stars = decoder.decode(results[part], stamps[part])
            for some in found:
                columns = ("probe", "stored", "left", "right", "emitted")
                new = list(zip(*(some[name].tolist() for name in columns), strict=True))
                pairs.extend(new)
                assert all(pair[0] >= complete for pair in new)
                assert all(pair[2 + side] >= oldest[side] for pair in new for side in Side), (
                    "rows that can still be met are kept"
                )
            assert stars["arrival"].dtype == stars["cycle"].dtype == np.int64
            assert not starred.keys() & set(stars["arrival"].tolist())
            starred.update(zip(stars["arrival"].tolist(), stars["cycle"].tolist(), strict=True))

    for begin in range(0, count + 1, portion):
        part = tuples[begin : begin + portion]
        last = begin + portion > count
        decoder.stage(intake.arrived(part))
        if last:
            decoder.flush()
        news = answers(device, pack(device.manifest, [*part, FLUSH] if last else part))
        results = np.concatenate([results, news])
        stamps = 3 * np.arange(len(results), dtype=np.uint64) + 5
        decode()
    assert decoder.arrivals == decoder.complete == count
    assert decoder.marks == 1
    assert decoder.faults == Faults()
    assert starred.keys() == set(range(count))

    reach = (
        parameters.cores * StorageRule.of(device.manifest).slots
        if window[0] == "LIFESPAN"
        else size
    )
    for own in Side:
        number = max(0, int((side == own).sum()) - reach)
        oldest = int(rows[own][number]) if (side == own).any() else None
        assert decoder.oldest_row(own) == oldest

    # A probe's star is the first one of its side behind any of its pairs.
    told = codec.unpack_results(results)
    for own in Side:
        ends = stamps[(told.kind == codec.star) & (told.side == own)]
        behind = [starred[at] for at in np.flatnonzero(side == own).tolist()]
        assert behind == sorted(behind)
        assert set(behind) <= set(ends.tolist())
        of_side = [(probe, emitted) for probe, *_, emitted in pairs if side[probe] == own]
        for probe, emitted in of_side:
            assert starred[probe] == int(ends[np.searchsorted(ends, emitted)])
    emitted = [pair[-1] for pair in pairs]
    places = (np.array(sorted(emitted), np.int64) - 5) // 3
    assert len(set(emitted)) == len(pairs)
    assert (told.kind[places] == codec.pair).all()

    keys = {
        key.name: np.array([step[1][key.name] for step in tuples], np.int64)
        for key in parameters.keys
    }
    arrivals = Arrivals(side, keys, np.array([step[2] for step in tuples], np.int64))
    band = DifferenceBand({key.name: Bounds(*BOUNDS) for key in parameters.keys})
    ordinal = arrivals.ordinals

    def row(at):
        return int(rows[side[at]][ordinal[at]])

    want = []
    for probe, stored in naive_join(arrivals, band_holds(band), (kept, kept)):
        if all(valid[side[at]][ordinal[at]] for at in (probe, stored)):
            r, s = (probe, stored) if side[probe] == Side.R else (stored, probe)
            want.append((probe, int(ordinal[stored]), row(r), row(s)))
    assert sorted(pair[:4] for pair in pairs) == sorted(want)


@pytest.mark.parametrize(("first", "lead"), [(3, 0), (3, 3), (4, 2)])
def test_rows_are_numbered_by_their_batch(devices, first, lead):
    device, parameters = devices["plain"], BUNDLES["plain"]
    converse(device, pack(device.manifest, configuration(parameters)), 2)
    tuples = [("R", {"x": 0}, 0), ("S", {"x": 0}, 0)]
    decoder = ResultDecoder(device.manifest, Ordering.outer(), CountWindow(3))
    no_times = np.zeros(0, np.uint64)
    batch = EncodedBatch(first - lead, None, np.zeros(lead + 1, np.uint64), {}, None, no_times)
    decoder.stage(
        Arrived(2, {of: SideTuples(batch, lead, lead + 1, np.array([int(of)])) for of in Side})
    )
    (pairs,), _ = decoder.decode(answers(device, pack(device.manifest, tuples)))
    assert (pairs["left"].tolist(), pairs["right"].tolist()) == ([first], [first])
    assert [decoder.oldest_row(side) for side in Side] == [first, first]


def test_tuples_without_a_null_may_match_long_after_one_that_had_a_null(devices):
    device, parameters = devices["plain"], BUNDLES["plain"]
    converse(device, pack(device.manifest, configuration(parameters)), 2)
    count = 9_000  # more than the first room of a log
    valid = [np.arange(count + 1) != 2, np.ones(count, np.bool_)]
    intake = Intake([np.arange(count + 1)] * 2, valid, np.random.default_rng(0))
    tuples = [*[("R", {"x": 0}, 0)] * count, ("S", {"x": 0}, 0)]
    decoder = ResultDecoder(device.manifest, Ordering.outer(), CountWindow(5))
    for part in (tuples[:5], tuples[5:]):
        decoder.stage(intake.arrived(part))
        (pairs,) = decoder.decode(answers(device, pack(device.manifest, part)))[0] or [None]
    assert sorted(pairs["left"].tolist()) == [count - 5 + n for n in range(5)]


@pytest.mark.parametrize("stamped", [False, True])
def test_a_group_that_the_other_side_has_closed_has_a_star(devices, stamped):
    device, parameters = devices["groups"], BUNDLES["groups"]
    limit = parameters.cores * device.manifest.storage.slack
    near = [("R", {"x": 1, "y": 1}, 0), ("S", {"x": 1, "y": 1}, 0)]
    tuples = [near[0], *[near[1]] * (limit + 2), near[0], near[1], near[0]]
    script = configuration(parameters, windows=[("WINDOW", 2)] * 2, period=3)
    converse(device, pack(device.manifest, script), 2)
    decoder = ResultDecoder(device.manifest, Ordering(3), CountWindow(2), detailed=stamped)
    decoder.stage(plain_intake(len(tuples)).arrived(tuples))
    assert decoder.complete == 0
    results = answers(device, pack(device.manifest, tuples))
    stamps = np.arange(len(results), dtype=np.uint64) if stamped else None
    parts, stars = decoder.decode(results, stamps)
    assert decoder.complete == limit + 3, "all but the last two tuples of R"
    names = {"left", "right", "probe", "stored", "emitted"} if stamped else {"left", "right"}
    assert all(set(part.arrays) == names for part in parts)
    assert 0 in stars["arrival"] if stamped else not len(stars["arrival"])
    assert len(stars["arrival"]) == len(stars["cycle"])
    decoder.flush()
    more, _ = decoder.decode(answers(device, pack(device.manifest, [FLUSH])), None)
    pairs = [
        pair
        for part in [*parts, *more]
        for pair in zip(part["left"].tolist(), part["right"].tolist(), strict=True)
    ]
    last = limit + 2
    want = [(0, s) for s in range(last)] + [(1, last - 2), (1, last - 1), (0, last), (1, last)]
    assert sorted(pairs) == sorted([*want, (2, last - 1), (2, last)])


def band_holds(band):
    def predicate(r, s):
        return all(
            bounds.low <= r[name] - s[name] <= bounds.high for name, bounds in band.bounds.items()
        )

    return predicate


def test_what_a_device_cannot_have_meant_is_an_error(devices):
    device = devices["tiny"]
    codec = JoinWords(device.manifest)
    one = np.ones(1, np.int64)

    def decoder():
        fresh = ResultDecoder(device.manifest, Ordering.outer(), CountWindow(3))
        tuples = [("R", {"x": 0}, 0), ("S", {"x": 0}, 0)]
        fresh.stage(plain_intake(2).arrived(tuples))
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


@pytest.mark.parametrize(
    ("flags", "faults"),
    [
        ((1, 0, 0), Faults(overflow=(Side.R,))),
        ((3, 0, 0), Faults(overflow=(Side.R, Side.S))),
        ((0, 1, 0), Faults(disorder=True)),
        ((0, 0, 1), Faults(illegal=True)),
        ((2, 1, 1), Faults((Side.S,), True, True)),
    ],
)
def test_each_fault_is_told_and_ends_the_pairs(devices, flags, faults):
    device = devices["tiny"]
    codec = JoinWords(device.manifest)
    decoder = ResultDecoder(device.manifest, Ordering.outer(), CountWindow(3))
    assert not decoder.faults
    mark = codec.pack_punctuation(codec.mark, 0, *flags)
    stamps = np.ones(1, np.uint64)
    pairs, stars = decoder.decode(mark, stamps)
    assert (pairs, len(stars["arrival"]), len(stars["cycle"])) == ([], 0, 0)
    assert decoder.faults
    assert decoder.faults == faults
    decoder.decode(mark)
    assert decoder.marks == 2
