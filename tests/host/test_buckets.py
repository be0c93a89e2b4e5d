# SPDX-License-Identifier: Apache-2.0
"""The parts that fields take in a bucket's number."""

from hypothesis import given
from hypothesis import strategies as st
import pytest

from hdl.index.cells import CellPreparation
from hdl.parameters import JoinParameters, KeyField
from host.buckets import Coordinate, bucket_plan, hash_turn
from host.manifest import Manifest
from host.predicate import Bounds
from tests.scenarios import manifest_of

FIELDS = tuple(KeyField(name=name, bits=16) for name in "abc")


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    parameters = JoinParameters(engine="index", keys=FIELDS, bucket_bits=14)
    return Manifest.load(manifest_of(parameters, tmp_path_factory.mktemp("bundle")))


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


def test_a_fixed_difference_is_hashed_and_one_field_is_cut_beside_it(manifest):
    plan = bucket_plan(manifest, {"a": Bounds(-50, 50), "b": Bounds(3, 3), "c": Bounds(0, 5)})
    # The lowest bits of b become those from 4 on.
    assert plan == {"a": Coordinate(), "b": Coordinate(hashed=True), "c": Coordinate(5, 7, 7)}
    plan = bucket_plan(manifest, {"a": Bounds(-(1 << 15), 1 << 14), "b": Bounds(3, 3)})
    assert plan == {"a": Coordinate(), "b": Coordinate(hashed=True), "c": Coordinate()}


def test_the_place_of_a_hash_is_where_the_hardware_puts_it(manifest):
    parameters = JoinParameters(engine="index", keys=FIELDS, bucket_bits=14)
    cells = CellPreparation(parameters)
    turns = [hash_turn(manifest, name) for name in "abc"]
    assert turns == [cells.turn(n) for n in range(3)] == [0, 4, 9]


def test_bounded_fields_share_the_bucket(manifest):
    plan = bucket_plan(manifest, {"a": Bounds(-10, 10), "c": Bounds(0, 1)})
    assert plan["a"] == Coordinate(5, 7, 0)
    assert plan["b"] == Coordinate()
    assert plan["c"] == Coordinate(1, 7, 7)


def test_an_operand_is_as_the_manifest_lays_it_out(manifest):
    fields = manifest.index.coordinate.fields
    part = Coordinate(5, 7, 3, hashed=True)
    value = part.value(manifest)
    for name, place in fields.items():
        assert value >> place.offset & ((1 << place.bits) - 1) == getattr(part, name)


def test_a_scan_has_no_buckets(tmp_path):
    scan = Manifest.load(manifest_of(JoinParameters(keys=FIELDS), tmp_path))
    assert scan.engine == "scan"
    with pytest.raises(ValueError, match="Only an index engine has buckets"):
        Coordinate().value(scan)
