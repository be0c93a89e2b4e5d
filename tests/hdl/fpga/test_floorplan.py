# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from hdl.fpga.devices import DEVICES
from hdl.fpga.floorplan import lay_out, multiplier_sites

DEVICE = DEVICES["lfe5u-85f"]


def test_the_device_has_as_many_sites_as_multipliers():
    assert len(set(DEVICE.multiplier_columns)) * len(set(DEVICE.multiplier_rows)) == 156


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
    ram = "accelerator.core_0.left.engine.ring.column_0.block_0.ram"
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
