# SPDX-License-Identifier: Apache-2.0
import json
import re

import pytest

from hdl.fpga.devices import DEVICES
from hdl.fpga.floorplan import floorplan, lay_out, multiplier_sites

DEVICE = DEVICES["lfe5u-85f"]


def names(*, cores, columns):
    """Block RAMs of an accelerator, in no order."""
    return [
        f"accelerator.core_{core}.{side}.engine.ring.column_{column}.block_0.ram"
        for column in reversed(range(columns))
        for core in range(cores)
        for side in ("left", "right")
    ]


def places(sites):
    """Column and row of every site by name."""
    return {
        name: tuple(map(int, re.fullmatch(r"X(\d+)/Y(\d+)/EBR[0-3]", site).groups()))
        for name, site in sites.items()
    }


def test_the_device_has_as_many_sites_as_block_rams_and_multipliers():
    assert len(set(DEVICE.ram_columns)) * len(set(DEVICE.ram_rows)) == DEVICE.block_rams
    assert len(set(DEVICE.multiplier_columns)) * len(set(DEVICE.multiplier_rows)) == 156


@pytest.mark.parametrize(("cores", "columns"), [(1, 1), (3, 4), (4, 26), (8, 13), (9, 8), (16, 6)])
def test_every_block_ram_has_a_site_of_its_own(cores, columns):
    rams = names(cores=cores, columns=columns)
    sites = floorplan(rams, DEVICE, cores=cores)
    assert set(sites) == set(rams)
    assert len(set(sites.values())) == len(rams)
    assert {row for _, row in places(sites).values()} <= set(DEVICE.ram_rows)


def test_the_lanes_of_a_region_stand_side_by_side_below_those_of_the_other():
    sites = places(floorplan(names(cores=8, columns=13), DEVICE, cores=8))
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
    sites = places(floorplan(names(cores=16, columns=2), DEVICE, cores=16))
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
    sites = places(floorplan([*tables, *keys, *digests], DEVICE, cores=4))
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
    assert floorplan(rams, DEVICE, cores=8) == {}


def test_a_device_without_known_sites_is_left_to_the_placer():
    assert floorplan(names(cores=1, columns=1), DEVICES["lfe5u-25f"], cores=1) == {}


def multipliers(count):
    """Multipliers of an accelerator, in no order."""
    return [f"accelerator.ingress.cells_r.x_key_{n:02}.product" for n in reversed(range(count))]


def test_multipliers_stand_side_by_side_in_the_middle():
    sites = multiplier_sites(multipliers(6), DEVICE)
    assert [sites[name] for name in sorted(sites)] == [
        f"X{column}/Y58/MULT18_{kind}"
        for column, kind in [(54, 5), (58, 0), (59, 1), (62, 4), (63, 5), (69, 0)]
    ]


@pytest.mark.parametrize("count", [1, 5, 52])
def test_every_multiplier_has_a_site_of_its_own(count):
    sites = multiplier_sites(multipliers(count), DEVICE)
    assert len(set(sites.values())) == len(sites) == count


@pytest.mark.parametrize(
    ("count", "device"), [(53, "lfe5u-85f"), (0, "lfe5u-85f"), (1, "lfe5u-25f")]
)
def test_multipliers_that_do_not_fit_are_left_to_the_placer(count, device):
    assert multiplier_sites(multipliers(count), DEVICES[device]) == {}


def test_the_netlist_gets_sites_and_open_carries(tmp_path):
    path = tmp_path / "top.json"
    ram = names(cores=1, columns=1)[0]
    chain = {"type": "CCU2C", "attributes": {}, "connections": {"CIN": ["0"]}}
    cells = {
        ram: {"type": "DP16KD", "attributes": {"src": "x"}},
        "multiplier": {"type": "MULT18X18D", "attributes": {}},
        "equality": {**chain, "parameters": {"INIT0": f"{0b1001:016b}"}},
        "order": {**chain, "parameters": {"INIT0": f"{0b1011:016b}"}},
        "adder": {**chain, "parameters": {"INIT0": f"{0x96AA:016b}"}},
    }
    path.write_text(json.dumps({"modules": {"top": {"cells": cells}}}))
    fixed = lay_out(path, top="top", device=DEVICE, cores=1)
    assert fixed == {"DP16KD": 1, "MULT18X18D": 1}
    found = json.loads(path.read_text())["modules"]["top"]["cells"]
    assert found[ram]["attributes"].keys() == {"src", "BEL"}
    assert found["multiplier"]["attributes"] == {"BEL": "X59/Y58/MULT18_1"}
    assert found["equality"]["connections"] == {"CIN": ["x"]}
    assert found["order"]["connections"] == {"CIN": ["x"]}
    assert found["adder"]["connections"] == {"CIN": ["0"]}
