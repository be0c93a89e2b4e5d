# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.fpga.critical_path import Hierarchy, critical_path, fmax_mhz, slow_registers, utilization
from hdl.fpga.shell import SHELL
from tests.hdl.nextpnr_report import QUEUE, REPORT, SCANNER


@pytest.fixture(scope="module")
def hierarchy(routed_verilog):
    return Hierarchy(routed_verilog, top=SHELL)


def test_clock_and_utilization_are_read_from_the_report():
    assert fmax_mhz(REPORT) == 123.46
    assert utilization(REPORT) == {
        "lut4": {"used": 4182, "available": 83640, "share": 0.05},
        "registers": {"used": 2000, "available": 83640, "share": 0.0239},
        "block_rams": {"used": 104, "available": 208, "share": 0.5},
    }


@pytest.mark.long
def test_the_critical_path_names_components(hierarchy):
    scanner, queue = critical_path(REPORT, hierarchy)
    assert scanner == {
        "component": "scan_engine.scanner", "instance": SCANNER,
        "net": f"{SCANNER}.row_TRELLIS_FF_Q", "cells": 3, "logic_ns": 1.25, "routing_ns": 1.0,
    }  # fmt: skip
    assert queue == {
        "component": "scan_engine.match_queue", "instance": QUEUE,
        "net": "w", "cells": 0, "logic_ns": 0.0, "routing_ns": 2.0,
    }  # fmt: skip


@pytest.mark.long
def test_slow_registers_are_gathered_by_component(hierarchy):
    data, enable = slow_registers(REPORT, hierarchy)
    assert data == {
        "component": "scan_engine.match_queue", "register": "w", "port": "D",
        "endpoints": 2, "worst_ns": 4.25, "net": "w",
    }  # fmt: skip
    assert (enable["port"], enable["worst_ns"]) == ("CE", 3)
