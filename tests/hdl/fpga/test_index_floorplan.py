# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.fpga.devices import DEVICES
from hdl.fpga.floorplan import index_floorplan, scan_floorplan
from tests.hdl.fpga.ram_places import places

DEVICE = DEVICES["lfe5u-85f"]
MEMORIES = {"engine.keys": 32, "engine.links": 13, "engine.table_.low_0": 2, "engine.heads.b_0": 16}


def names(*, cores=1, memories=MEMORIES):
    """Block RAMs of an accelerator, in no order."""
    return [
        f"accelerator.core_{core}.{side}.{memory}.block_{block}.ram"
        for memory, blocks in memories.items()
        for block in reversed(range(blocks))
        for core in range(cores)
        for side in ("right", "left")
    ]


@pytest.mark.parametrize("cores", [1, 2, 3])
@pytest.mark.parametrize("blocks", [1, 2, 3, 30])
def test_every_block_ram_has_a_site_of_its_own(cores, blocks):
    rams = names(cores=cores, memories={"engine.keys": blocks, "tracker.by_time.queue": 1})
    sites = index_floorplan(rams, DEVICE)
    assert set(sites) == set(rams)
    assert len(set(sites.values())) == len(rams)
    everywhere = {(column, row) for column, _ in DEVICE.ram_columns for row in DEVICE.ram_rows}
    assert set(places(sites).values()) <= everywhere


def test_regions_stand_side_by_side_in_the_middle():
    rams = names(cores=2, memories={"engine.keys": 20})
    sites = places(index_floorplan(rams, DEVICE))
    everywhere = [column for column, _ in DEVICE.ram_columns]
    columns = [
        {everywhere.index(at[0]) for name, at in sites.items() if f".core_{core}.{side}." in name}
        for core in range(2) for side in ("left", "right")
    ]  # fmt: skip
    assert columns == [set(range(first, first + 5)) for first in (16, 21, 26, 31)]


def test_what_a_walk_reads_stands_nearer_than_where_it_begins():
    sites = places(index_floorplan(names(), DEVICE))
    ours = {name: at for name, at in sites.items() if ".left." in name}
    columns = [column for column, _ in ours.values()]
    middle = (min(columns) + max(columns)) / 2, 55

    def distance(memory):
        found = [
            abs(column - middle[0]) + abs(row - middle[1])
            for name, (column, row) in ours.items() if memory in name
        ]  # fmt: skip
        return sum(found) / len(found)

    assert distance("keys") < distance("heads")
    assert distance("links") < distance("heads")
    assert distance("table_") < distance("heads")


@pytest.mark.parametrize(
    "rams",
    [
        names(memories={"engine.keys": 105}),  # more than there are
        ["accelerator.core_0.left.engine.ring.column_0.block_0.ram"],  # of a scan
        [],
    ],
)
def test_what_does_not_fit_is_left_to_the_placer(rams):
    assert index_floorplan(rams, DEVICE) == {}


def test_a_device_without_known_sites_is_left_to_the_placer():
    assert index_floorplan(names(), DEVICES["lfe5u-25f"]) == {}


def test_block_rams_are_of_one_engine():
    assert not scan_floorplan(names(), DEVICE, cores=1)
