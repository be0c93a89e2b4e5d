# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.fpga.devices import DEVICES
from hdl.fpga.scan_floorplan import scan_floorplan
from tests.hdl.fpga.ram_places import places

DEVICE = DEVICES["lfe5u-85f"]


def names(*, cores, columns):
    """Block RAMs of an accelerator, in no order."""
    return [
        f"accelerator.core_{core}.{side}.engine.ring.column_{column}.block_0.ram"
        for column in reversed(range(columns))
        for core in range(cores)
        for side in ("left", "right")
    ]


def test_the_device_has_as_many_sites_as_block_rams():
    assert len(set(DEVICE.ram_columns)) * len(set(DEVICE.ram_rows)) == DEVICE.block_rams


@pytest.mark.parametrize(("cores", "columns"), [(1, 1), (3, 4), (4, 26), (8, 13), (9, 8), (16, 6)])
def test_every_block_ram_has_a_site_of_its_own(cores, columns):
    rams = names(cores=cores, columns=columns)
    sites = scan_floorplan(rams, DEVICE, cores=cores)
    assert set(sites) == set(rams)
    assert len(set(sites.values())) == len(rams)
    assert {row for _, row in places(sites).values()} <= set(DEVICE.ram_rows)


def test_the_lanes_of_a_region_stand_side_by_side_below_those_of_the_other():
    sites = places(scan_floorplan(names(cores=8, columns=13), DEVICE, cores=8))
    ring = "accelerator.core_5.{}.engine.ring.column_{}.block_0.ram"
    left = [sites[ring.format("left", n)] for n in range(13)]
    right = [sites[ring.format("right", n)] for n in range(13)]
    everywhere = [column for column, _ in DEVICE.ram_columns]
    first = everywhere.index(left[0][0])
    assert [column for column, _ in left] == everywhere[first : first + 13]
    assert [column for column, _ in left] == [column for column, _ in right]
    assert {row for _, row in left} == {70}
    assert {row for _, row in right} == {82}


def test_the_regions_of_many_cores_stand_side_by_side_and_neighbours_below_each_other():
    sites = places(scan_floorplan(names(cores=16, columns=2), DEVICE, cores=16))
    ring = "accelerator.core_{}.{}.engine.ring.column_0.block_0.ram"
    left = [sites[ring.format(core, "left")] for core in range(16)]
    right = [sites[ring.format(core, "right")] for core in range(16)]
    assert [row for _, row in left] == [row for _, row in right] == 4 * list(DEVICE.ram_rows)
    columns = [column for pair in zip(left[::4], right[::4], strict=True) for column, _ in pair]
    assert columns == sorted(set(columns))
    assert {column for column, _ in left} == {column for column, _ in left[::4]}


def test_digests_stand_among_the_keys_of_their_lanes():
    digests = names(cores=4, columns=8)
    keys = [name.replace(".ring.", ".verifier.ring.") for name in names(cores=4, columns=16)]
    tables = [
        f"accelerator.core_{core}.{side}.engine.passes.probes.block_{block}.ram"
        for core in range(4) for side in ("left", "right") for block in range(2)
    ]  # fmt: skip
    sites = places(scan_floorplan([*tables, *keys, *digests], DEVICE, cores=4))
    assert len(set(sites.values())) == 208
    of_region = sorted((name for name in sites if ".core_2.left." in name), key=sites.get)
    kinds = "".join("kdt"[("verifier" not in n) + ("passes" in n)] for n in of_region)
    assert kinds == "kdkkdktkdkkdkkdkkdktkdkkdk"


@pytest.mark.parametrize(
    "rams",
    [
        names(cores=8, columns=14),  # too many for a strip
        ["accelerator.core_0.left.engine.heads.block_0.ram"],  # of an index
        [],
    ],
)
def test_what_does_not_fit_is_left_to_the_placer(rams):
    assert scan_floorplan(rams, DEVICE, cores=8) == {}


def test_a_device_without_known_sites_is_left_to_the_placer():
    assert scan_floorplan(names(cores=1, columns=1), DEVICES["lfe5u-25f"], cores=1) == {}
