# SPDX-License-Identifier: Apache-2.0
"""The software engine finds the pairs of the reference join, in order, and reads little more."""

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from host import Arrivals, Bounds, CountWindow, DifferenceBand, Side, TimeWindow, reference_join
from host.engine import software
from host.engine.software import SoftwareEngine, Tuples

TOP = (1 << 64) - 1
EDGES = [-(2**63), 2**63 - 1, 0, 1, -1, 2**62, -(2**62) + 1]


def unsigned(values):
    return values.view(np.uint64) ^ np.uint64(1 << 63)


def joined(engine, left, right, times, block, valid=(None, None)):
    """Return left and right numbers of the pairs of two sides' fields, given block by block."""
    places = (
        np.searchsorted(times[1], times[0], "left") + np.arange(len(times[0])),
        np.searchsorted(times[0], times[1], "right") + np.arange(len(times[1])),
    )
    sides = {
        side: Tuples(
            [unsigned(values) for values in fields],
            times[side],
            places[side],
            np.arange(len(times[side])),
            valid[side],
        )
        for side, fields in zip(Side, (left, right), strict=True)
    }
    blocks = []
    for begin in range(0, len(times[0]) + len(times[1]), block):
        cut = {
            side: one.part(one.before(begin), one.before(begin + block))
            for side, one in sides.items()
        }
        blocks += engine.push(cut)
    # No block waits for the pairs of another one.
    found = {block.end: list(engine.found(block)) for block in reversed(blocks)}
    found = [each for block in blocks for each in found[block.end]]
    none = [np.zeros(0, np.int64)]
    pairs = [np.concatenate([*none, *(getattr(one, name) for one in found)]) for name in NAMES]
    return pairs, found


NAMES = ("left", "right")


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    counts = draw(st.integers(0, 60)), draw(st.integers(0, 60))

    def column(count):
        kind = draw(st.integers(0, 4))
        if kind == 4:
            return np.full(count, draw(st.sampled_from([0, 3, *EDGES])))
        if kind == 0:
            return rng.integers(0, 5, count)
        if kind == 1:
            return rng.integers(-50, 50, count)
        if kind == 2:
            return rng.choice(np.array(EDGES), count)
        return rng.integers(-(2**63), 2**63 - 1, count)

    fields = [(column(counts[0]), column(counts[1])) for _ in range(draw(st.integers(0, 4)))]
    bound = st.one_of(
        st.none(), st.integers(-9, 9), st.sampled_from([-TOP - 1, -TOP, -(2**63), 2**62, TOP])
    )
    bounds = [
        Bounds(*draw(st.one_of(st.tuples(bound, bound), st.integers(-5, 5).map(lambda c: (c, c)))))
        for _ in fields
    ]
    latest = draw(st.sampled_from([3, 50, 2**63]))
    times = [np.sort(rng.integers(0, latest, count).astype(np.uint64)) for count in counts]
    window = draw(
        st.one_of(
            st.integers(1, 70).map(CountWindow),
            st.sampled_from([0, 1, 5, 60, 2**62, TOP]).map(TimeWindow),
        )
    )
    valid = [rng.random(count) < 0.8 if draw(st.booleans()) else None for count in counts]
    return fields, bounds, times, window, valid


@settings(max_examples=150, deadline=None)
@given(cases(), st.integers(1, 80), st.sampled_from([1, 50, 1 << 21]))
def test_pairs_and_their_order_are_those_of_the_reference_join(case, block, most):
    fields, bounds, times, window, valid = case
    engine = SoftwareEngine(bounds, window, most_read=most)
    left, right = [one for one, _ in fields], [two for _, two in fields]
    got, _ = joined(engine, left, right, times, block, valid)
    keys = [{f"k{at}": values for at, values in enumerate(side)} for side in (left, right)]
    keys = [each or {"k": np.zeros(len(own), int)} for each, own in zip(keys, times, strict=True)]
    arrivals = Arrivals.merge(*keys, *times)
    band = DifferenceBand({f"k{at}": bound for at, bound in enumerate(bounds)})
    rows = reference_join(arrivals, band, window).rows(arrivals)
    kept = np.ones(len(rows[0]), np.bool_)
    for side, flags in zip(rows, valid, strict=True):
        kept &= True if flags is None else flags[side]
    assert np.array_equal(got[0], rows[0][kept])
    assert np.array_equal(got[1], rows[1][kept])


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 1 << 32),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from([0.05, 0.5, 0.95]),
    st.sampled_from([7, 90, 400]),
    st.sampled_from([0, 55]),
    st.sampled_from([1, 2, 5, 400]),
    st.one_of(st.integers(0, 60).map(TimeWindow), st.integers(1, 30).map(CountWindow)),
)
def test_keys_of_few_and_of_many_partners_are_found_together(
    seed, hot, share, block, bits, latest, window
):
    """Few partners are looked at one by one, up to 15; more are ranges; wide keys are hashed."""
    rng = np.random.default_rng(seed)
    keys = np.where(rng.random(400) < hot, 0, rng.integers(0, 40, 400)) << bits
    is_right = rng.random(400) < share
    times = [
        np.sort(rng.integers(0, latest, int(n))).astype(np.uint64) for n in np.bincount(is_right)
    ]
    left, right = keys[~is_right], keys[is_right]
    got, _ = joined(SoftwareEngine([Bounds(0, 0)], window), [left], [right], times, block)
    arrivals = Arrivals.merge({"k": left}, {"k": right}, *times)
    rows = reference_join(arrivals, DifferenceBand({"k": Bounds(0, 0)}), window).rows(arrivals)
    assert np.array_equal(got[0], rows[0])
    assert np.array_equal(got[1], rows[1])


def band_of_two(rng, count):
    return [rng.integers(0, 10**4, count), rng.integers(0, 10**4, count)], [Bounds(-10, 10)] * 2


def clustered(rng, count):
    fields = [rng.normal(0, 100, count).astype(np.int64) for _ in range(2)]
    return fields, [Bounds(-10, 10)] * 2


def hot_key(rng, count):
    keys = np.where(rng.random(count) < 0.4, 0, rng.integers(0, 1000, count))
    return [keys], [Bounds(0, 0)]


def powers_of_two(rng, count):
    return [rng.integers(0, 1 << 12, count) << 40], [Bounds(0, 0)]


def constant(rng, count):
    return [np.zeros(count, np.int64)], [Bounds(0, 0)]


def popular_symbols(rng, count):
    fields = [np.minimum(rng.zipf(1.3, count), 2000), rng.integers(0, 1000, count)]
    return fields, [Bounds(0, 0), Bounds(-5, 5)]


def one_sided(rng, count):
    return [rng.integers(0, 10**4, count)], [Bounds(9900, None)]


def wide_and_narrow(rng, count):
    fields = [rng.integers(0, 10**4, count), rng.integers(0, 10**9, count)]
    return fields, [Bounds(-4000, 4000), Bounds(-50_000, 50_000)]


DATA = [
    band_of_two, clustered, hot_key, powers_of_two, constant, popular_symbols, one_sided,
    wide_and_narrow,
]  # fmt: skip


@pytest.mark.few(10)
@pytest.mark.parametrize("within", [20, 4000])
@pytest.mark.parametrize("data", DATA)
def test_tuples_read_are_linear_in_tuples_and_results(data, within):
    """No key is so common, and no values lie so close, that windows are searched one by one."""
    count, rng = 40_000, np.random.default_rng(7)
    left, bounds = data(rng, count)
    right, _ = data(rng, count)
    if within == 4000 and data in (constant, hot_key):
        count = 4_000  # the results are many enough
        left, right = ([values[:count] for values in side] for side in (left, right))
    engine = SoftwareEngine(bounds, TimeWindow(within))
    times = [np.arange(count, dtype=np.uint64)] * 2
    (pairs, _), found = joined(engine, left, right, times, 1 << 16)
    compared = sum(each.compared for each in found)
    assert compared <= 4 * len(pairs) + 12 * 2 * count, (compared, len(pairs))


def test_a_product_is_found_piece_by_piece():
    """Each piece is about as large as it may be, though all tuples of a block match one another."""
    count, most = 3000, 20_000
    engine = SoftwareEngine([Bounds(0, 0)], TimeWindow(TOP), most_read=most)
    keys = [np.zeros(count, np.int64)]
    times = [np.arange(count, dtype=np.uint64)] * 2
    pairs, found = joined(engine, keys, keys, times, 2 * count)
    assert len(pairs[0]) == count**2
    assert max(len(one.left) for one in found) <= max(most, count)
    assert [one.complete for one in found] == sorted({one.complete for one in found})
    assert found[-1].complete == 2 * count


def test_windows_hold_what_later_tuples_can_meet_and_nothing_else():
    engine = SoftwareEngine([Bounds(0, 0)], TimeWindow(10))
    times = [np.arange(1000, dtype=np.uint64)] * 2
    _, found = joined(engine, [np.arange(1000)], [np.arange(1000)], times, 64)
    assert engine.held == 22
    assert found[-1].oldest == {Side.R: 989, Side.S: 989}
    engine = SoftwareEngine([Bounds(0, 0)], CountWindow(7))
    _, found = joined(engine, [np.arange(1000)], [np.arange(1000)], times, 64)
    assert engine.held == 14
    assert found[-1].oldest == {Side.R: 993, Side.S: 993}


def test_the_default_bound_of_a_piece_is_the_documented_one():
    assert SoftwareEngine([], CountWindow(1)).most_read == software.MOST_READ


def intervals(rng, count, long):
    """Return starts and ends: most are short, and some cover a tenth of the time."""
    starts = np.sort(rng.integers(0, 100 * count, count))
    lengths = rng.integers(0, 200, count)
    lengths[rng.choice(count, long, replace=False)] = 10 * count
    return starts, starts + lengths


@pytest.mark.parametrize("long", [0, 1, 8])
@pytest.mark.parametrize("shift", [0, 5_000, -5_000])
def test_a_few_long_intervals_do_not_let_all_others_be_read(long, shift):
    """The ends may be encoded from another origin than the starts."""
    count, rng = 20_000, np.random.default_rng(11)
    sides = [intervals(rng, count, long) for _ in range(2)]
    (starts, ends), (begins, stops) = sides
    # left.start - right.end <= 0, and left.end - right.start >= 0
    bounds = [Bounds(None, -shift), Bounds(shift, None)]
    engine = SoftwareEngine(bounds, TimeWindow(10 * count))
    times = [side[0].astype(np.uint64) for side in sides]
    left, right = [starts, ends + shift], [stops + shift, begins]
    (rows, others), found = joined(engine, left, right, times, 1 << 16)
    compared = sum(each.compared for each in found)
    expected = sum(
        np.searchsorted(begins, ends, "right") - np.searchsorted(np.sort(stops), starts, "left")
    )
    assert len(rows) == expected
    assert (starts[rows] <= stops[others]).all()
    assert (begins[others] <= ends[rows]).all()
    assert len(set(zip(rows.tolist(), others.tolist(), strict=True))) == len(rows)
    assert compared <= 8 * len(rows) + 12 * 2 * count, (compared, len(rows))


@pytest.mark.parametrize("window", [TimeWindow(30), CountWindow(25)], ids=["time", "rows"])
def test_keys_whose_hashes_are_equal_are_told_apart(window):
    """Keys over all 64 bits are sorted by a hash; these differ in its lowest bits alone."""
    multiplier, mask = 0x9E3779B97F4A7C15, TOP
    inverse = pow(multiplier, -1, 1 << 64)
    hashes = [at * inverse & mask for at in range(2, 40)]
    keys = np.array([(h ^ h >> 32) * inverse & mask for h in hashes], np.uint64)
    assert keys.max() - keys.min() > 1 << 62
    keys, rng, count = keys.view(np.int64), np.random.default_rng(5), 400
    sides = [[rng.choice(keys, count) ^ np.int64(-1 << 63)] for _ in range(2)]
    times = [np.arange(count, dtype=np.uint64)] * 2
    (left, right), _ = joined(SoftwareEngine([Bounds(0, 0)], window), *sides, times, 150)
    near = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    if isinstance(window, TimeWindow):
        meets = near <= 30
    else:  # of tuples with one time the left one comes first
        meets = np.subtract.outer(np.arange(count), np.arange(count)) <= 25
        meets &= np.subtract.outer(np.arange(count), np.arange(count)) >= -24
    equal = sides[0][0][:, None] == sides[1][0][None, :]
    assert len(left) == int((equal & meets).sum()) > 100
    assert equal[left, right].all()
