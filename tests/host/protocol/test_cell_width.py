# SPDX-License-Identifier: Apache-2.0
"""The width of an index's cells for tuples that lie close together, or do not."""

import numpy as np
import pytest

from hdl.parameters import JoinParameters, KeyField
from host.protocol.buckets import bucket_plan
from host.protocol.cells import (
    MOST_COARSER,
    MOST_FINER,
    expected_cycles,
    fitted_plan,
    plans_of,
    visits_in_pairs,
)
from host.protocol.manifest import Manifest
from host.protocol.spread import Spread
from host.reference.predicate import EQUAL, Bounds
from tests.host.small_bundles import write_manifest

BAND = {"x": Bounds(-10, 10), "y": Bounds(-10, 10)}
COUNT = 8_192


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    parameters = JoinParameters.of(
        engine="index",
        keys=tuple(KeyField(name=name, bits=32) for name in "xy"),
        cores=1,
        sub_window=1 << 16,
        bucket_bits=18,
    )
    return Manifest.load(write_manifest(parameters, tmp_path_factory.mktemp("bundle")))


def around(middle, deviation):
    generator = np.random.default_rng(7)
    return {
        name: generator.normal(middle, deviation, COUNT).astype(np.int64).view(np.uint64)
        for name in "xy"
    }


def uniform():
    generator = np.random.default_rng(7)
    return {name: generator.integers(0, 10_000, COUNT).astype(np.uint64) for name in "xy"}


def fitted(manifest, sample, stored, bounds=BAND):
    return fitted_plan(manifest, bounds, {}, 0, sample, stored)


@pytest.mark.parametrize("middle", [5_000, -3, -(1 << 30)])
def test_a_cluster_gets_narrower_cells(manifest, middle):
    """By hand: 5,000 tuples with a deviation of 100 are at most 0.08 in a unit of area."""
    plan = fitted(manifest, around(middle, 100), 5_000)
    assert {part.shift for part in plan.values()} == {2}
    assert sorted(part.place for part in plan.values()) == [0, 9]


def test_uniform_tuples_get_wider_cells_as_long_as_visits_are_what_takes_time(manifest):
    """By hand, of cells of 32 x 32, 32 x 64 and 128 x 128 values: 1.63, 1.31 and 1.16 visits.

    A probe reads 0.54, 0.87 and 4.4 entries of a window of 20,000, and twice as many of 40,000.
    """
    wider = fitted(manifest, uniform(), 20_000)
    assert [part.shift for part in wider.values()] == [5, 6]
    assert [part.place for part in wider.values()] == [0, 9], "x is visited two cells at a time"
    assert fitted(manifest, uniform(), 40_000) is None
    few = fitted(manifest, around(0, 100), 5)
    assert [part.shift for part in few.values()] == [6, 7], "a window of few tuples"


@pytest.fixture
def beside_a_hash():
    return {"x": EQUAL, "y": Bounds(-3, 3)}


def test_the_cut_beside_a_hash_is_narrower_where_keys_have_many_rows(manifest, beside_a_hash):
    """By hand: of 2 keys, 4,096 tuples have one, 16 of them in a unit of the middle."""
    sample = around(0, 100)
    sample["x"] = np.arange(COUNT).astype(np.uint64) % np.uint64(2)
    plain = bucket_plan(manifest, beside_a_hash)
    plan = fitted(manifest, sample, 8_192, beside_a_hash)
    assert plan["x"] == plain["x"]
    assert plan["x"].hashed
    assert plain["y"].shift == 5
    assert plan["y"].shift in (0, 1)
    sample["x"] = np.arange(COUNT).astype(np.uint64)
    wider = fitted(manifest, sample, 100, beside_a_hash)
    assert wider is None or wider["y"].shift > 5, "each key has a row"


def test_keys_with_few_tuples_of_a_popular_one_are_counted_as_pairs(manifest, beside_a_hash):
    """A quarter of the tuples have one key, so two of them have it by a chance of 1/16."""
    sample = {
        "x": np.where(np.arange(COUNT) % 4 == 0, 0, np.arange(COUNT)).astype(np.uint64),
        "y": np.zeros(COUNT, np.uint64),
    }
    plan = bucket_plan(manifest, beside_a_hash)
    found = expected_cycles(manifest, plan, beside_a_hash, {}, sample, 16_000)
    alike = 1 / 16 + 1 / 2**9  # or the same hash, of the 9 bits beside the cut
    assert found == pytest.approx(16_000 * alike * (1 + 6 / 32), rel=0.01)


def test_nothing_is_fitted_without_cells(manifest):
    assert fitted(manifest, around(0, 100), 5_000, {"x": EQUAL, "y": EQUAL}) is None
    assert fitted(manifest, around(0, 100), 5_000, {}) is None, "all tuples are in one bucket"


def test_cycles_are_visits_or_entries(manifest):
    """A band of 21 values meets 1 + 20 / 32 cells of a field; uniform entries fill them evenly."""
    plan = bucket_plan(manifest, BAND)

    def cycles(stored):
        return expected_cycles(manifest, plan, BAND, {}, uniform(), stored)

    # Of the paired field, one visit reads both cells.
    visits = 1 + 20 / 32
    assert cycles(1) == pytest.approx(visits)
    entries = 1_000_000 * (32 + 20) ** 2 / 10_000**2
    # The estimate counts 340 pairs of the sample in one cell, give or take 5 %.
    assert cycles(1_000_000) == pytest.approx(entries, rel=0.2)


def test_neighbouring_cells_are_visited_in_pairs():
    """Probes of a range from a random place on meet the cells of its ends and all between."""
    generator = np.random.default_rng(3)
    for span in (20, 32, 50, 90, 150):
        low = generator.integers(0, 1 << 20, 20_000)
        met = (low + span) // 32 - low // 32 + 1
        mean = ((met + 1) // 2).mean()
        assert visits_in_pairs(span / 32 + 1) == pytest.approx(mean, rel=0.01)


def test_a_probe_that_visits_as_much_as_it_reads_takes_longer_than_either(manifest):
    """As measured in the simulated index with 20,000 uniform tuples; see decision 0043."""

    def cycles(**finer):
        plan = bucket_plan(manifest, BAND, finer=finer)
        return expected_cycles(manifest, plan, BAND, {}, uniform(), 20_000)

    assert cycles(x=-1, y=-1) == pytest.approx(1.43, rel=0.05)
    assert cycles(x=0, y=-1) == pytest.approx(1.31, rel=0.05)
    assert cycles(x=0, y=-2) == pytest.approx(1.50, rel=0.06)
    assert cycles(x=-1, y=0) == pytest.approx(1.63, rel=0.05)


@pytest.mark.parametrize("finer", range(-MOST_COARSER, MOST_FINER + 1))
def test_halved_and_doubled_cells_share_the_bits_of_the_bucket_number(manifest, finer):
    plan = bucket_plan(manifest, BAND, finer={"x": finer, "y": finer})
    assert [part.shift for part in plan.values()] == [5 - finer] * 2
    assert [part.width for part in plan.values()] == [9, 9]


def test_cells_of_either_field_are_halved_alone(manifest):
    plan = bucket_plan(manifest, BAND, finer={"y": 1})
    assert [part.shift for part in plan.values()] == [5, 4]


def test_cells_that_are_halved_in_one_field_are_halved_in_the_paired_one(manifest):
    """The paired field is the one with the most cells, whatever its name."""
    plans = plans_of(manifest, BAND, {"x": Spread(200), "y": Spread(9_999)}, 0)
    for square, halved in zip(plans[::2], plans[1::2], strict=True):
        shifts = {name: part.shift - halved[name].shift for name, part in square.items()}
        assert shifts == {"x": 0, "y": 1}
