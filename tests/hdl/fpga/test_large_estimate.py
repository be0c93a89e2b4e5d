# SPDX-License-Identifier: Apache-2.0
from dataclasses import asdict
import json

from hypothesis import given
from hypothesis import strategies as st
import pytest

from hdl.__main__ import main
from hdl.fpga import cost as large_estimate
from hdl.fpga.cost import RESOURCES, TAKES, estimate, estimate_text, most_cores, resources_of
from hdl.fpga.devices import LARGE_DEVICES
from hdl.fpga.tools import YOSYS, ToolError, find_tool
from hdl.presets import PRESETS

U280 = LARGE_DEVICES["u280"]
BAND = PRESETS["ecp5-band"]


def test_cells_are_multiplied_by_the_instances_of_their_module():
    statistics = {
        "modules": {
            "\\leaf": {"num_cells_by_type": {"LUT6": 3, "FDRE": 2, "CARRY4": 5, "RAMB36E2": 1}},
            "\\top": {"num_cells_by_type": {"RAM32M16": 1, "leaf": 4, "DSP48E2": 1, "RAMB18E2": 1}},
            "\\unused": {"num_cells_by_type": {"LUT6": 1000}},
        }
    }
    assert resources_of(statistics, {"leaf": 4, "top": 1}) == {
        "luts": 20, "registers": 8, "block_rams": 9, "multipliers": 1,
    }  # fmt: skip


#: A difference of two accelerators is divided by two, so quarters are fine enough.
amounts = st.fixed_dictionaries(
    {name: st.integers(0, 20_000).map(lambda count: count / 4) for name in RESOURCES}
)


@given(amounts, amounts.filter(lambda each: each["luts"] >= 1), st.floats(0.1, 1))
def test_as_many_cores_fit_as_there_are_and_not_one_more(fixed, each, usable):
    cores, limit = most_cores(U280, fixed, each, usable)

    def fits(number):
        return all(
            fixed[name] + number * each[name] <= usable * getattr(U280, name) * (1 + 1e-9)
            for name in RESOURCES
            if each[name] > 0
        )

    assert cores == 0 or fits(cores)
    assert not fits(cores + 1)
    assert fixed[limit] + (cores + 1) * each[limit] > usable * getattr(U280, limit) * (1 - 1e-9)


@pytest.fixture
def made_up(monkeypatch):
    """Accelerators of which each core takes 1,000 LUTs, and of which the rest takes 500."""

    def synthesized(parameters, folder):
        cores = parameters.cores
        return {"luts": 500 + 1000 * cores, "registers": 900 * cores, "block_rams": 10 * cores,
                "multipliers": 0}  # fmt: skip

    monkeypatch.setattr(large_estimate, "synthesized", synthesized)
    monkeypatch.setattr(large_estimate, "find_tool", lambda name: name)


@pytest.mark.usefixtures("made_up")
def test_an_estimate_shows_its_arithmetic(tmp_path):
    report = estimate(BAND, U280, folder=tmp_path, mhz=200, usable=0.5)
    cores = min((U280.luts // 2 - 500) // 1000, U280.block_rams // 2 // 10)
    assert (report["cores"], report["limited_by"]) == (cores, "block_rams")
    assert report["per_core"]["luts"] == 1000
    assert report["once"]["luts"] == 500
    assert report["window"] == cores * BAND.window.sub_window
    assert report["comparators"] == BAND.with_(cores=cores).comparators
    assert report["pairs_per_s"] == report["comparators"] * 200e6
    assert report["device"] == asdict(U280)
    text = estimate_text(report)
    assert text.startswith("ESTIMATE")
    assert f"10.0 block rams = {cores}" in text
    assert "200 MHz (assumed)" in text


@pytest.mark.usefixtures("made_up")
def test_a_share_without_room_is_refused(tmp_path):
    with pytest.raises(ValueError, match="Not one core fits 0% of the Alveo U280.*too few"):
        estimate(BAND, U280, folder=tmp_path, mhz=200, usable=1e-5)
    with pytest.raises(ValueError, match=r"above 0 and at most 1, not 1\.5"):
        estimate(BAND, U280, folder=tmp_path, mhz=200, usable=1.5)


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize("device", LARGE_DEVICES)
def test_the_command_estimates(device, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["cost", "--preset", "ecp5-index", "--device", device.upper()]) == 0
    said = capsys.readouterr().out
    assert LARGE_DEVICES[device].title in said
    assert "rate =" not in said  # an index has no rate without a workload


@pytest.mark.long
def test_the_cells_of_a_real_accelerator_are_all_known(tmp_path):
    try:
        find_tool(YOSYS)
    except ToolError as error:
        pytest.skip(str(error))
    report = estimate(PRESETS["tiny"], U280, folder=tmp_path, mhz=250, usable=0.7)
    assert report["limited_by"] == "luts"
    assert 500 < report["per_core"]["luts"] < 5000
    assert report["once"]["luts"] > 0
    unknown = set()
    for cores in ("2", "4"):
        modules = json.loads((tmp_path / cores / "modules.json").read_text())["modules"]
        cells = set().union(*(module["num_cells_by_type"] for module in modules.values()))
        instances = {name.removeprefix("\\") for name in modules}
        unknown |= {cell.removeprefix("\\") for cell in cells} - instances - {*TAKES}
    assert unknown <= {"CARRY4", "CARRY8", "MUXF7", "MUXF8", "MUXF9", "$scopeinfo"}
