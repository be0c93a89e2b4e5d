# SPDX-License-Identifier: Apache-2.0
import json
import subprocess
import sys

import pytest

from hdl.__main__ import main
from hdl.fpga import depth as depth_module
from hdl.fpga.critical_path import Hierarchy
from hdl.fpga.depth import depth_table, logic_depth
from hdl.fpga.tools import YOSYS, ToolError, find_tool

VERILOG = """\
module queue(clk, o);
  assign o = clk;
endmodule

module top(clk, o);
  queue left (
    .clk(clk)
  );
endmodule
"""


def cell(kind, inputs, outputs):
    """A cell of a netlist: its ports with their bits."""
    ports = {"input": inputs, "output": outputs}
    return {
        "type": kind,
        "connections": {port: [bit] for own in ports.values() for port, bit in own.items()},
        "port_directions": {port: side for side, own in ports.items() for port in own},
    }


def register(data, output, **more):
    return cell("TRELLIS_FF", {"CLK": 1, "DI": data, **more}, {"Q": output})


def lut(output, *inputs):
    return cell("LUT4", dict(zip("ABCD", inputs, strict=False)), {"Z": output})


def netlist(cells, names):
    """A module of these cells, with names for some bits."""
    return {
        "cells": {str(n): cell for n, cell in enumerate(cells)},
        "netnames": {name: {"bits": [bit]} for name, bit in names.items()},
    }


def depth(cells, names):
    return logic_depth(netlist(cells, names), Hierarchy(VERILOG, top="top"))


def test_the_longest_way_counts():
    # From 10: through one LUT, and through three, to register 20.
    cells = [
        register("x", 10),
        lut(11, 10, "0"),
        lut(12, 11, 10),
        lut(13, 10, 12),
        register(13, 20, CE=11),
    ]
    endpoints, paths = depth(cells, {"left.first": 10, "left.last": 20})
    assert endpoints == {1: 1, 3: 1}
    assert [(path["levels"], path["port"]) for path in paths] == [(3, "D"), (1, "CE")]
    assert {(path["start"], path["end"]) for path in paths} == {
        ("top.queue.first", "top.queue.last")
    }


def test_a_carry_chain_is_one_level():
    chain = [
        cell("CCU2C", {"A0": 10, "CIN": 30 + n}, {"COUT": 31 + n, "S0": 40 + n}) for n in range(24)
    ]
    cells = [register("x", 10), *chain, register(63, 20), lut(64, 63), register(64, 21)]
    endpoints, paths = depth(cells, {"left.first": 10, "left.sum": 20, "left.sign": 21})
    assert endpoints == {1: 1, 2: 1}
    assert [path["end"] for path in paths] == ["top.queue.sign", "top.queue.sum"]


def test_bits_of_a_register_are_one_row_and_block_rams_are_ends():
    ram = cell("DP16KD", {"CLKA": 1, "ADA0": 12}, {"DOA0": 30})
    cells = [register("x", 10), lut(12, 10), register(12, 20), register(12, 21), ram]
    names = {"left.start": 10, "left.word_TRELLIS_FF_Q_1": 20, "left.word": 21, "ram": 30}
    endpoints, paths = depth(cells, names)
    assert endpoints == {1: 3}
    assert [(path["end"], path["port"], path["endpoints"]) for path in paths] == [
        ("top.queue.word", "D", 2),
        ("top.ram", "ADA0", 1),
    ]


def test_a_distributed_ram_is_read_through_and_written_to():
    ram = cell("TRELLIS_DPR16X4", {"WCK": 1, "RAD": 12, "DI": 11, "WRE": 13}, {"DO": 30})
    cells = [register("x", 10), lut(11, 10), lut(12, 10), lut(13, 11), ram, register(30, 20)]
    endpoints, paths = depth(cells, {"left.start": 10, "left.ram": 30, "left.end": 20})
    assert endpoints == {1: 1, 2: 2}
    assert [(path["end"], path["port"], path["levels"]) for path in paths] == [
        ("top.queue.end", "D", 2),
        ("top.queue.ram", "WRE", 2),
        ("top.queue.ram", "D", 1),
    ]


def test_the_table_shows_the_deepest_paths():
    path = {"start": "a.b", "end": "c.d", "port": "D", "endpoints": 7}
    report = {
        "endpoints": {"0": 9, "4": 7},
        "paths": [{"levels": 4, **path}, {"levels": 3, **path}],
    }
    counts, _, head, row, _, note = depth_table(report, limit=1).splitlines()
    assert counts == "ports of registers by levels: 9 with 0, 7 with 4"
    assert head.split() == ["levels", "endpoints", "from", "to", "port"]
    assert row.split() == ["4", "7", "a.b", "c.d", "D"]
    assert "carry chain" in note


@pytest.fixture
def synthesis(tmp_path, monkeypatch):
    """A folder to synthesize in."""
    try:
        find_tool(YOSYS)
    except ToolError as error:
        pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)


@pytest.mark.long
def test_the_command_counts_the_levels_of_an_accelerator(synthesis, capsys):
    one = ["--preset", "tiny", "--cores", "1"]
    assert main(["depth", *one, "--rows", "3"]) == 0
    counts, _, head, *rows = capsys.readouterr().out.splitlines()
    assert counts.startswith("ports of registers by levels: ")
    assert head.startswith("levels  endpoints  from")
    assert len(rows) == 3 + 2
    # Whether time has run out for a key decides whether the tuple at hand is accepted.
    assert int(rows[0].split()[0]) > 4


@pytest.mark.long
def test_the_merge_of_several_inputs_is_synthesized_with_the_accelerator(monkeypatch, tmp_path):
    given = []

    def synthesize(verilog, **options):
        given.append(verilog)
        raise ToolError("that is enough")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(depth_module, "find_tool", lambda tool: tool)
    monkeypatch.setattr(depth_module, "synthesize_netlist", synthesize)
    assert main(["depth", "--preset", "tiny", "--cores", "1", "--inputs", "2"]) == 1
    assert "merge_port" in given[0]


@pytest.mark.long
def test_no_more_than_four_levels_stand_between_the_registers_of_the_paper(synthesis, capsys):
    assert main(["depth", "--preset", "paper", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report["endpoints"]) == ["0", "1", "2", "3", "4"]


def test_a_design_that_cannot_be_is_one_line():
    command = [sys.executable, "-m", "hdl", "depth", "--preset", "board-small", "--inputs", "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == (
        "python -m hdl: 2 inputs are merged by timestamp, so 'timestamp_bits' must not be zero\n"
    )
