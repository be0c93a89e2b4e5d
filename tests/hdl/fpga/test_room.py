# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from hdl.__main__ import main
from hdl.fpga import route as flow
from hdl.fpga.devices import DEVICES
from hdl.fpga.floorplan import require_room
from hdl.fpga.shell import SHELL

DEVICE = DEVICES["lfe5u-85f"]


def netlist(path, **numbers):
    """Write a netlist with so many cells of each type."""
    cells = {
        f"{kind}_{n}": {"type": kind, "connections": {}, "port_directions": {}}
        for kind, number in numbers.items()
        for n in range(number)
    }
    path.write_text(json.dumps({"modules": {SHELL: {"cells": cells}}}))
    return path


@pytest.mark.long
def test_a_full_device_has_room(tmp_path):
    full = netlist(tmp_path / "full.json", DP16KD=208, LUT4=83_640, TRELLIS_FF=83_640, VCC=1)
    require_room(full, DEVICE, top=SHELL)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"DP16KD": 209}, "it takes 209 block RAMs, and there are 208"),
        ({"LUT4": 83_635, "TRELLIS_DPR16X4": 1}, "83,641 sites of LUTs, and there are 83,640"),
        ({"TRELLIS_FF": 83_641}, "it takes 83,641 registers, and there are 83,640"),
        ({"DP16KD": 216, "LUT4": 83_641}, "216 block RAMs.*; it takes 83,641 sites.*sub-window"),
    ],
)
def test_one_cell_too_many_is_named_with_what_there_is(tmp_path, numbers, message):
    with pytest.raises(ValueError, match=f"no room on the lfe5u-85f: .*{message}"):
        require_room(netlist(tmp_path / "large.json", **numbers), DEVICE, top=SHELL)


@pytest.mark.long
def test_the_command_says_so_and_places_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    large = netlist(tmp_path / "large.json", DP16KD=57)
    monkeypatch.setattr(flow, "find_tool", lambda name: name)
    monkeypatch.setattr(flow, "placed_netlist", lambda *arguments, **options: (large, {}))
    monkeypatch.setattr(flow, "run_tool", lambda *arguments, **options: pytest.fail("it ran"))
    assert main(["route", "--preset", "tiny", "--device", "lfe5u-25f", "--output", "out"]) == 2
    assert "it takes 57 block RAMs, and there are 56" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
