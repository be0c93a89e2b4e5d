# SPDX-License-Identifier: Apache-2.0
"""The parts that fields take in a bucket's number."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
import pytest

from hdl.parameters import JoinParameters, KeyField
from host.protocol.buckets import Coordinate, bucket_plan, cell_bits, shared
from host.protocol.manifest import Manifest
from host.protocol.spread import Spread, seeds, tightened
from host.reference.predicate import EQUAL, Bounds
from tests.host.small_bundles import write_manifest

FIELDS = tuple(KeyField(name=name, bits=16) for name in "abc")


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    parameters = JoinParameters.of(engine="index", keys=FIELDS, bucket_bits=14)
    return Manifest.load(write_manifest(parameters, tmp_path_factory.mktemp("bundle")))


@st.composite
def some_bounds(draw):
    ends = st.one_of(st.none(), st.integers(-(1 << 17), 1 << 17))
    names = draw(st.sets(st.sampled_from("abc")))
    return {name: Bounds(draw(ends), draw(ends)) for name in sorted(names)}


@given(bounds=some_bounds())
def test_parts_do_not_overlap_and_cells_are_as_wide_as_the_bounds(manifest, bounds):
    plan = bucket_plan(manifest, bounds)
    assert list(plan) == ["a", "b", "c"]
    used = [part for part in plan.values() if part.width]
    taken = [bit for part in used for bit in range(part.place, part.place + part.width)]
    assert len(taken) == len(set(taken))
    assert all(bit < 14 for bit in taken)
    for name, part in plan.items():
        span = bounds.get(name, Bounds())
        if part.hashed or part.width:
            assert span.low is not None
            assert span.high is not None
        if part.hashed:
            assert span.high - span.low <= 0
        elif part.width:
            assert (1 << part.shift) > max(span.high - span.low, 0)


def planned(manifest, bounds, spreads=None, choice=0):
    """A plan without its seeds, which are checked here."""
    plan = bucket_plan(manifest, bounds, spreads, choice)
    assert [part.seed for part in plan.values()] == list(seeds(choice, len(plan)))
    return {name: replace(part, seed=0) for name, part in plan.items()}


def test_a_fixed_difference_is_hashed_and_one_field_is_cut_beside_it(manifest):
    plan = planned(manifest, {"a": Bounds(-50, 50), "b": Bounds(3, 3), "c": Bounds(0, 5)})
    assert plan == {"a": Coordinate(), "b": Coordinate(hashed=True), "c": Coordinate(5, 7, 7)}
    plan = planned(manifest, {"a": Bounds(0, 5), "b": Bounds(3, 3), "c": Bounds(-50, 50)})
    assert plan["a"] == Coordinate(5, 7, 7), "the field with more cells, wherever it stands"
    plan = planned(manifest, {"a": Bounds(-(1 << 15), 1 << 14), "b": Bounds(3, 3)})
    assert plan == {"a": Coordinate(), "b": Coordinate(hashed=True), "c": Coordinate()}


def test_bounded_fields_share_the_bucket(manifest):
    plan = planned(manifest, {"a": Bounds(-10, 10), "c": Bounds(0, 1)})
    assert plan["a"] == Coordinate(5, 7, 0)
    assert plan["b"] == Coordinate()
    assert plan["c"] == Coordinate(1, 7, 7)


def test_all_three_fields_share_the_bucket_and_no_number_is_broken(manifest):
    plan = bucket_plan(manifest, dict.fromkeys("abc", Bounds(-1, 1)))
    assert [part.seed for part in plan.values()] == list(seeds(0, 3))
    assert sorted((part.place, part.width) for part in plan.values()) == [(0, 5), (5, 5), (10, 4)]
    assert all(type(part.width) is type(part.place) is int for part in plan.values())
    beside = bucket_plan(manifest, {"a": EQUAL, "b": Bounds(-1, 1)})
    assert type(beside["b"].width) is int


def test_the_field_that_needs_least_gets_its_bits_first():
    assert shared(10, {"a": 9, "b": 1}) == {"b": 1, "a": 9}
    assert shared(10, {"a": 9, "b": 9, "c": 9}) == {"a": 3, "b": 3, "c": 4}
    assert [cell_bits(1, None, 0), cell_bits(16, None, 4), cell_bits(8, Spread(0), 0)] == [1, 12, 0]


def test_bits_go_to_the_fields_whose_values_differ(manifest):
    bounds = {"a": Bounds(-10, 10), "c": Bounds(-10, 10)}
    constant = {"c": Spread(0)}
    assert planned(manifest, bounds, constant)["a"] == Coordinate(5, 11, 0)
    assert planned(manifest, bounds, constant)["c"] == Coordinate()
    # The field with more cells has the lowest bits; the other has as many as it has cells for.
    narrow = planned(manifest, bounds, {"a": Spread(200), "c": Spread(60_000)})
    assert (narrow["a"], narrow["c"]) == (Coordinate(5, 3, 11), Coordinate(5, 11, 0))
    far = {"a": Spread(40_200, low=40_000), "c": Spread(60_000)}
    assert planned(manifest, bounds, far) == narrow


def test_multiples_that_cannot_differ_are_hashed(manifest):
    bounds = {"a": Bounds(-10, 10), "c": Bounds(-10, 10)}
    plan = planned(manifest, bounds, {"a": Spread(64_000, 1000)})
    assert plan["a"] == Coordinate(hashed=True)
    assert plan["c"].width


def test_few_hashed_keys_leave_their_bits_to_the_grid_beside_them(manifest):
    bounds = {"a": Bounds(0, 0), "c": Bounds(0, 1)}
    plan = planned(manifest, bounds, {"a": Spread(7)})
    assert plan["a"] == Coordinate(hashed=True)
    assert plan["c"] == Coordinate(3, 11, 3)


def test_an_equality_is_hashed_with_the_seeds_that_are_chosen(tmp_path):
    parameters = JoinParameters.of(engine="index", comparator="equality", keys=FIELDS)
    manifest = Manifest.load(write_manifest(parameters, tmp_path))
    assert set(planned(manifest, {}).values()) == {Coordinate(hashed=True)}
    first, other = (
        [part.seed for part in bucket_plan(manifest, {}, choice=choice).values()]
        for choice in range(2)
    )
    assert not set(first) & set(other)
    assert Coordinate(5, 7, 3, hashed=True, seed=first[0]).value(manifest) == first[0]


ends = st.one_of(st.none(), st.integers(-60, 60))


@given(low=ends, high=ends, step=st.integers(1, 12))
def test_tightened_bounds_admit_the_same_multiples(low, high, step):
    bounds = Bounds(low, high)
    tight = tightened(bounds, Spread(1000, step))
    for difference in range(-10 * step, 11 * step, step):
        assert bounds.hold(difference) == tight.hold(difference)
    assert tightened(bounds, None) == bounds


def test_an_operand_is_as_the_manifest_lays_it_out(manifest):
    fields = manifest.index.coordinate.fields
    part = Coordinate(5, 7, 3, hashed=True, seed=0xDEADBEEF)
    value = part.value(manifest)
    for name, place in fields.items():
        assert value >> place.offset & ((1 << place.bits) - 1) == getattr(part, name)
        # What does not fit leaves the other fields alone.
        large = replace(Coordinate(), **{name: (1 << place.bits + 3) - 1}).value(manifest)
        assert large == (1 << place.bits) - 1 << place.offset
    assert Coordinate().value(manifest) == 0


def test_a_scan_has_no_buckets(tmp_path):
    scan = Manifest.load(write_manifest(JoinParameters.of(keys=FIELDS), tmp_path))
    assert scan.engine == "scan"
    with pytest.raises(ValueError, match=r"^Only an index engine has buckets$"):
        Coordinate().value(scan)
