# SPDX-License-Identifier: Apache-2.0
"""The cells that the digests of a band are made of."""

from hypothesis import given
from hypothesis import strategies as st
import pytest

from hdl.parameters import JoinParameters, KeyField
from host.protocol.cells import Cell, cell_plan, narrowest
from host.protocol.manifest import Manifest
from host.protocol.spread import Spread
from host.reference.predicate import EQUAL, Bounds
from tests.hdl.cell_digests import doubles_of, probe_digest_of
from tests.host.small_bundles import write_manifest

FIELDS = tuple(KeyField(name=name, bits=16) for name in "abc")
#: A part that every key has the same digest in.
ONE_CELL = Cell(0, 16)


def manifest_of(fields, digest_bits, folder):
    """The manifest of a band with digests."""
    parameters = JoinParameters.of(keys=fields, digest_bits=digest_bits)
    return Manifest.load(write_manifest(parameters, folder))


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    return manifest_of(FIELDS, 17, tmp_path_factory.mktemp("bundle"))


@given(st.integers(-300, 300), st.integers(-300, 300))
def test_cells_are_the_narrowest_that_a_range_needs(low, high):
    shift = narrowest(Bounds(low, high))
    assert high - low <= 1 << shift
    assert shift == 0 or high - low > 1 << shift - 1


@pytest.mark.parametrize("bounds", [Bounds(), Bounds(3, None), Bounds(None, 3)])
def test_a_range_that_is_open_has_no_cells(bounds):
    assert narrowest(bounds) is None


def test_every_bounded_field_has_the_part_of_its_number(manifest):
    assert manifest.digests.parts == (6, 6, 5)
    bounds = {"a": Bounds(-10, 10), "b": EQUAL, "c": Bounds(0, 1)}
    assert cell_plan(manifest, bounds) == [Cell(0, 5), Cell(1, 0), Cell(2, 0)]


def test_the_parts_of_open_fields_hold_higher_bits_of_others(manifest):
    plan = cell_plan(manifest, {"b": Bounds(-10, 10)})
    assert plan == [Cell(1, 5 + 6), Cell(1, 5), ONE_CELL]
    plan = cell_plan(manifest, {"a": Bounds(-10, 10), "c": Bounds(0, 1)})
    assert plan == [Cell(0, 5), Cell(2, 0 + 5), Cell(2, 0)]
    assert cell_plan(manifest, {}) == [ONE_CELL] * 3


def test_a_field_that_has_only_two_cells_is_not_used(manifest):
    plan = cell_plan(manifest, {"a": Bounds(-10, 10), "b": Bounds(-(1 << 14), 1 << 14)})
    assert [cell.field for cell in plan] == [0, 0, 0]
    assert plan[2] == ONE_CELL


def test_bits_that_all_values_share_are_left_out(manifest):
    bounds = {"a": Bounds(-10, 10), "b": Bounds(-10, 10)}
    spreads = {"a": Spread(top=64_000, step=64), "b": Spread(top=100)}
    plan = cell_plan(manifest, bounds, spreads)
    assert plan[0] == Cell(0, 6)
    assert plan[1] == Cell(1, 5)
    assert plan[2] == Cell(0, 6 + 6), "and b has no more bits"


def test_the_operand_is_laid_out_as_the_manifest_says(manifest):
    fields = manifest.digests.cell.fields
    value = Cell(2, 11).value(manifest)
    read = {name: value >> at.offset & (1 << at.bits) - 1 for name, at in fields.items()}
    assert read == {"field": 2, "shift": 11}


def test_an_accelerator_without_such_digests_has_no_cells(tmp_path):
    path = write_manifest(JoinParameters.of(keys=FIELDS), tmp_path)
    with pytest.raises(ValueError, match="Only a band with digests has cells"):
        Cell().value(Manifest.load(path))


@given(data=st.data())
def test_no_match_is_lost(manifest, data):
    """In every part, each key of a probe's range lies in the double cell of the probe."""
    bounds, keys, lows = {}, [], []
    for field in FIELDS:
        low = data.draw(st.integers(-200, 200))
        span = data.draw(st.integers(0, 70))
        bounds[field.name] = Bounds(low, low + span)
        first = data.draw(st.integers(0, (1 << 16) - 1 - span))
        lows.append(first)
        keys.append(first + data.draw(st.integers(0, span)))
    for cell, width in zip(cell_plan(manifest, bounds), manifest.digests.parts, strict=True):
        doubles = doubles_of([width], [keys[cell.field] >> cell.shift])
        probe = probe_digest_of([width], [lows[cell.field] >> cell.shift])
        assert doubles["odd" if probe & 1 else "even"] == probe >> 1
