# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from bench.figures import routed as figures
from bench.figures.registry import NotMeasured
from bench.figures.routed import errors_of, kept_cost, worst_error
from hdl.fpga.devices import find_device
from hdl.fpga.provenance import design_hash
from hdl.presets import PRESETS

DEVICE = find_device("lfe5u-85f")


def routed(design, lut4, registers=50, block_rams=8):
    """Return a routing report of `tiny`, cut short."""
    used = {"lut4": lut4, "registers": registers, "block_rams": block_rams}
    return {
        "preset": "tiny",
        "device": DEVICE.name,
        "parameters": PRESETS["tiny"].words(),
        "design": design,
        "utilization": {name: {"used": number} for name, number in used.items()},
    }


def cost(design="d", logic_cells=90, synthesis="y"):
    """Return a cost, cut short; its shell takes 10 cells and 5 registers."""
    return {
        "design": design,
        "synthesis": synthesis,
        "total": {"logic_cells": logic_cells, "registers": 45, "block_rams": 8},
        "shell": {"logic_cells": 10, "registers": 5, "block_rams": 0},
    }


@pytest.fixture
def design(monkeypatch):
    """Hash of what stands in for the current design."""
    verilog = "module routing_shell(); endmodule"
    monkeypatch.setattr(figures, "routed_verilog", lambda parameters, device: verilog)
    return design_hash(verilog)


def test_the_shell_is_part_of_both_sides():
    assert errors_of(routed("d", 100), cost()) == {"lut4": 0, "registers": 0, "block_rams": 0}
    assert errors_of(routed("d", 80), cost())["lut4"] == pytest.approx(0.25)


def test_a_cost_is_told_again_only_for_another_design_or_another_yosys(tmp_path, monkeypatch):
    told = []

    def tell(parameters, device, *, folder, preset):
        folder.mkdir(parents=True, exist_ok=True)
        told.append(preset)
        return cost(design="d", synthesis=program)

    class Program:
        def to_dict(self):
            return program

    monkeypatch.setattr(figures, "cost_report", tell)
    monkeypatch.setattr(figures, "identify", lambda name: Program())
    program = "1.0"
    for expected in (1, 1):
        assert kept_cost("tiny", DEVICE, "d", folder=tmp_path)["design"] == "d"
        assert len(told) == expected
    kept_cost("tiny", DEVICE, "e", folder=tmp_path)
    assert len(told) == 2
    program = "2.0"
    kept_cost("tiny", DEVICE, "d", folder=tmp_path)
    assert len(told) == 3


def test_the_worst_of_the_current_reports_counts(monkeypatch, design):
    reports = {"a": routed(design, 125), "b": routed("0" * 64, 1000)}
    monkeypatch.setattr(figures, "published", lambda: reports)
    monkeypatch.setattr(figures, "kept_cost", lambda preset, device, design: cost())
    result = worst_error(print)
    assert result.value == pytest.approx(0.2)
    assert result.notes[0] == "tiny: lut4 -20.0%, registers +0.0%, block_rams +0.0%"
    assert result.notes[1].endswith("earlier design do not count: tiny")
    json.dumps(result.details)


@pytest.mark.usefixtures("design")
def test_without_a_current_report_nothing_is_measured(monkeypatch):
    monkeypatch.setattr(figures, "published", lambda: {"b": routed("0" * 64, 1000)})
    with pytest.raises(NotMeasured, match="No routing report is of the current design"):
        worst_error(print)
